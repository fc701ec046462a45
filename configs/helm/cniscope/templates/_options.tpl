{{/* cniscope.toml, from the value "options" and from those that the pod follows, too. */}}
{{- define "cniscope.options" -}}
{{- $platform := include "cniscope.platform" . | fromYaml }}
{{- $options := deepCopy (.Values.options | default dict) }}
{{- $_ := set $options "metrics" (dict "listen" (include "cniscope.listen" .)) }}
{{- if .Values.metrics.web.existingSecret }}
{{- $_ := set $options.metrics "web_config" "/etc/cniscope-web/web-config.yml" }}
{{- $_ := set $options.metrics "health_listen" (printf "127.0.0.1:%d" (int .Values.metrics.web.healthPort)) }}
{{- end }}
{{- $_ := set $options "nri" (ternary (dict "socket" .Values.nri.socket) (dict "enabled" false) .Values.nri.enabled) }}
{{- $_ := set $options "runtime" (dict "socket" $platform.runtimeSocket) }}
{{- $_ := set $options "cni" (dict "conf_dir" $platform.cniConfDir) }}
{{- $_ := set $options "state" (dict "dir" .Values.state.hostPath) }}
{{- if .Values.reader.enabled }}
{{- $_ := set $options "control" (dict "read_group" (include "cniscope.reader" .) "read_dir" (include "cniscope.readDir" .)) }}
{{- end }}
{{- if .Values.spool.hostPath }}
{{- $export := $options.export | default dict }}
{{- $_ := set $export "spool" (merge (dict "dir" .Values.spool.hostPath) ($export.spool | default dict)) }}
{{- $_ := set $options "export" $export }}
{{- end }}
{{- include "cniscope.table" (dict "at" "" "table" $options) | trim }}
{{- end }}

{{/* A table of TOML: its values, then the tables in it. Options that are null or empty are left out:
where the file is silent, the variables of "env" count. */}}
{{- define "cniscope.table" -}}
{{- $at := .at }}
{{- range $key, $value := .table }}
{{- if not (or (kindIs "map" $value) (kindIs "invalid" $value) (eq (toString $value) "")) }}
{{ include "cniscope.key" $key }} = {{ include "cniscope.value" $value }}
{{- end }}
{{- end }}
{{- range $key, $value := .table }}
{{- if and (kindIs "map" $value) $value }}
{{- $name := include "cniscope.key" $key }}
{{- if $at }}{{ $name = printf "%s.%s" $at $name }}{{ end }}

{{- $inside := include "cniscope.table" (dict "at" $name "table" $value) }}
{{- if not (hasPrefix "[" (trim $inside)) }}

[{{ $name }}]
{{- end }}
{{- $inside }}
{{- end }}
{{- end }}
{{- end }}

{{/* Keys that are no bare ones are written as JSON writes them, which TOML reads. */}}
{{- define "cniscope.key" -}}
{{- if regexMatch "^[A-Za-z0-9_-]+$" . }}{{ . }}{{ else }}{{ toJson . }}{{ end }}
{{- end }}

{{- define "cniscope.value" -}}
{{- if kindIs "slice" . }}
{{- $items := list }}
{{- range . }}{{ $items = append $items (include "cniscope.value" .) }}{{ end }}
{{- printf "[%s]" (join ", " $items) }}
{{- else if kindIs "map" . }}
{{- $items := list }}
{{- range $key, $value := . }}{{ $items = append $items (printf "%s = %s" (include "cniscope.key" $key) (include "cniscope.value" $value)) }}{{ end }}
{{- printf "{ %s }" (join ", " $items) }}
{{- else }}
{{- toRawJson . }}
{{- end }}
{{- end }}

{{/* The options that take effect only with a restart: all but those that cniscope reads anew. */}}
{{- define "cniscope.restartOptions" -}}
{{- $options := deepCopy (.Values.options | default dict) }}
{{- range splitList " " (include "cniscope.liveOptions" . | trim) }}
{{- $path := splitList "." . }}
{{- $section := $options }}
{{- range initial $path }}
{{- $next := get $section . | default dict }}
{{- $_ := set $section . $next }}
{{- $section = $next }}
{{- end }}
{{- $_ := unset $section (last $path) }}
{{- end }}
{{- toJson (list $options (include "cniscope.listen" .) .Values.metrics.web (include "cniscope.platform" .) .Values.nri .Values.state .Values.spool .Values.reader.enabled) }}
{{- end }}
