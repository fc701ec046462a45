{{/* Names and labels, as every chart has them. */}}
{{- define "cniscope.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "cniscope.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "cniscope.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "cniscope.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* Of what is in no namespace: two releases of one name may be in two. */}}
{{- define "cniscope.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "cniscope.fullname" .) }}
{{- end }}

{{- define "cniscope.selectorLabels" -}}
app.kubernetes.io/name: {{ include "cniscope.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* The given text, then commonLabels and the given labels with other keys. */}}
{{- define "cniscope.merged" -}}
{{- $more := mergeOverwrite (dict) ((index . 0).Values.commonLabels | default dict) (index . 2 | default dict) }}
{{- range $key, $_ := index . 1 | fromYaml }}{{ $more = unset $more $key }}{{ end }}
{{- index . 1 }}
{{- with $more }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "cniscope.labels" -}}
{{- include "cniscope.merged" (list . (include "cniscope.ownLabels" .) dict) }}
{{- end }}

{{- define "cniscope.podLabels" -}}
{{ include "cniscope.selectorLabels" . }}
# kubectl cniscope finds the pods by it, whatever nameOverride is.
app.kubernetes.io/part-of: cniscope
{{- end }}

{{- define "cniscope.ownLabels" -}}
{{ include "cniscope.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" | quote }}
{{- end }}

{{- define "cniscope.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (ternary (include "cniscope.fullname" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "cniscope.image" -}}
{{- $version := ternary "devel" (printf "v%s" .appVersion) (eq .appVersion "devel") }}
{{- $at := .tag | default $version | printf ":%s" }}
{{- if .digest }}{{ $at = printf "@%s" .digest }}{{ end }}
{{- printf "%s/%s%s" (trimSuffix "/" ((.global).imageRegistry | default .registry)) .repository $at }}
{{- end }}

{{/* What differs between platforms, as YAML: a value if it is given, else the profile's word. */}}
{{- define "cniscope.platform" -}}
{{- $p := .Files.Get "profiles/generic.yaml" | fromYaml }}
{{- $p = mustMergeOverwrite $p (.Files.Get (printf "profiles/%s.yaml" .Values.profile) | fromYaml) }}
{{- $given := dict
  "runtimeSocket" .Values.runtime.socket
  "cniConfDir" .Values.cni.confDir
  "seLinuxType" .Values.seLinuxOptions.type
  "securityContextConstraints" .Values.openshift.securityContextConstraints.create
  "resourceQuota" .Values.resourceQuota.create }}
{{- range $key, $value := $given }}
{{- if not (kindIs "invalid" $value) }}{{ $_ := set $p $key $value }}{{ end }}
{{- end }}
{{- toYaml $p }}
{{- end }}

{{/* host:port as cniscope takes it: "" is every address. */}}
{{- define "cniscope.listen" -}}
{{- $address := .Values.metrics.address | trimPrefix "[" | trimSuffix "]" }}
{{- if contains ":" $address }}{{ $address = printf "[%s]" $address }}{{ end }}
{{- printf "%s:%d" $address (int .Values.metrics.port) }}
{{- end }}

{{/* Where a kubelet of the node finds it. */}}
{{- define "cniscope.probeHost" -}}
{{- $address := .Values.metrics.address | trimPrefix "[" | trimSuffix "]" }}
{{- if has $address (list "" "0.0.0.0") }}{{ $address = "127.0.0.1" }}{{ end }}
{{- if eq $address "::" }}{{ $address = "::1" }}{{ end }}
{{- $address }}
{{- end }}

{{- define "cniscope.onLoopback" -}}
{{- $host := .Values.metrics.address | trimPrefix "[" | trimSuffix "]" }}
{{- if or (hasPrefix "127." $host) (eq $host "::1") (eq $host "localhost") }}true{{ end }}
{{- end }}

{{/* What a schema cannot say. */}}
{{- define "cniscope.check" -}}
{{- if and .Values.existingSecret .Values.existingConfigMap }}
{{- fail "existingSecret and existingConfigMap: give one of them" }}
{{- end }}
{{- if hasKey .Values.files "cniscope.toml" }}
{{- fail "files: cniscope.toml is made of options; a whole one is named in existingSecret or existingConfigMap" }}
{{- end }}
{{- if and .Values.podMonitor.enabled (include "cniscope.onLoopback" .) }}
{{- fail (printf "podMonitor.enabled, but metrics.address is %s, where no Prometheus of the cluster gets to: set metrics.address=\"\" (every address of the node)" .Values.metrics.address) }}
{{- end }}
{{- if and .Values.metrics.web.existingSecret (eq (int .Values.metrics.web.healthPort) (int .Values.metrics.port)) }}
{{- fail (printf "metrics.web.healthPort and metrics.port are both %d: give one another number" (int .Values.metrics.port)) }}
{{- end }}
{{- if (.Values.rbacProxy).enabled }}
{{- fail "rbacProxy was removed in 0.3.0: metrics.address and metrics.web.existingSecret say who may read metrics" }}
{{- end }}
{{- end }}
