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

{{/* The container that asks the API server before it passes a scrape on. */}}
{{- define "cniscope.rbacProxy" -}}
- name: kube-rbac-proxy
  image: {{ include "cniscope.image" .Values.rbacProxy.image | quote }}
  imagePullPolicy: {{ .Values.rbacProxy.image.pullPolicy }}
  args:
    - {{ printf "--secure-listen-address=:%d" (int .Values.rbacProxy.port) | quote }}
    - {{ printf "--upstream=http://%s/" (include "cniscope.upstream" .) | quote }}
    # Kubelet asks cniscope itself; nothing but the metrics goes through here.
    - "--allow-paths=/metrics"
    {{- range .Values.rbacProxy.extraArgs }}
    - {{ . | quote }}
    {{- end }}
  ports:
    - name: metrics
      containerPort: {{ int .Values.rbacProxy.port }}
      hostPort: {{ int .Values.rbacProxy.port }}
      protocol: TCP
  resources:
    {{- toYaml .Values.rbacProxy.resources | nindent 4 }}
  securityContext:
    # Its own, as the query sidecar's: processes of the same user could read the token.
    runAsUser: 60948
    runAsGroup: 60948
    runAsNonRoot: true
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: ["ALL"]
    seccompProfile:
      type: RuntimeDefault
  terminationMessagePolicy: FallbackToLogsOnError
  volumeMounts:
    {{- include "cniscope.apiMount" . | nindent 4 }}
{{- end }}

{{- define "cniscope.upstream" -}}
{{- $host := include "cniscope.probeHost" . }}
{{- if contains ":" $host }}{{ $host = printf "[%s]" $host }}{{ end }}
{{- printf "%s:%d" $host (int .Values.metrics.port) }}
{{- end }}
