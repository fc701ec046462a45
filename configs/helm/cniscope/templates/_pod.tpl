{{/* /etc/cniscope: one source, or options of somebody else's together with files of ours. */}}
{{- define "cniscope.optionsVolume" -}}
{{- $sources := list }}
{{- with .Values.existingSecret }}{{ $sources = append $sources (dict "secret" (dict "name" .)) }}{{ end }}
{{- with .Values.existingConfigMap }}{{ $sources = append $sources (dict "configMap" (dict "name" .)) }}{{ end }}
{{- if and $sources .Values.files }}
{{- $sources = append $sources (dict "configMap" (dict "name" (include "cniscope.fullname" .))) }}
{{- end }}
{{- if $sources -}}
projected:
  sources:
    {{- toYaml $sources | nindent 4 }}
{{- else -}}
configMap:
  name: {{ include "cniscope.fullname" . | quote }}
{{- end }}
{{- end }}
