{{/* The folder that cniscope and the reader share: one socket is in it. */}}
{{- define "cniscope.readDir" -}}/run/cniscope-read{{- end }}

{{/* The user and group of the query sidecar. No image and no distribution is known to use 60947: not distroless
     (65532, 65534), and systemd's table leaves 60578 to 61183 unused. Above 65535 a Pod's user namespace may have it. */}}
{{- define "cniscope.reader" -}}60947{{- end }}

{{/* Whose tokens see everything. */}}
{{- define "cniscope.operator" -}}
{{- printf "%s-operator" (include "cniscope.fullname" . | trunc 54 | trimSuffix "-") }}
{{- end }}

{{/* Whether an API server can keep everybody else from running anything else in the pods. */}}
{{- define "cniscope.guarded" -}}
{{- $has := semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version }}
{{- if not (kindIs "invalid" .Values.reader.guard) }}{{ $has = .Values.reader.guard }}{{ end }}
{{- if $has }}true{{ end }}
{{- end }}

{{/* Whether there is a Role for developers. It grants exec into every pod of the namespace, and the guard keeps to
     cniscope's own: among the pods of the control plane it would make its owner root of the nodes. */}}
{{- define "cniscope.developers" -}}
{{- if and (include "cniscope.guarded" .) (not (has .Release.Namespace (list "kube-system" "default"))) }}true{{ end }}
{{- end }}

{{/* A container has a token for the API server where it mounts this, and nowhere else. */}}
{{- define "cniscope.apiMount" -}}
- name: api
  mountPath: /var/run/secrets/kubernetes.io/serviceaccount
  readOnly: true
{{- end }}

{{- define "cniscope.apiVolume" -}}
- name: api
  projected:
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 3600
      # Every namespace has it since Kubernetes 1.20. The pod starts without it, too: cniscope needs none.
      - configMap:
          name: kube-root-ca.crt
          optional: true
          items:
            - {key: ca.crt, path: ca.crt}
      - downwardAPI:
          items:
            - path: namespace
              fieldRef: {fieldPath: metadata.namespace}
{{- end }}

{{/* The container that answers kubectl's exec, and writes Events. */}}
{{- define "cniscope.readerContainer" -}}
- name: reader
  image: {{ include "cniscope.image" (merge (dict "appVersion" .Chart.AppVersion) .Values.image) | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command: ["/cniscope-reader"]
  args: ["serve"{{ if .Values.reader.events.enabled }}, "--events"{{ end }}]
  env:
    - name: NODE_NAME
      valueFrom:
        fieldRef:
          fieldPath: spec.nodeName
    - name: CNISCOPE_READ_SOCKET
      value: "{{ include "cniscope.readDir" . }}/read.sock"
    # Whose tokens see everything; any other sees the pods of its namespace.
    - name: CNISCOPE_OPERATOR
      value: {{ printf "%s:%s" .Release.Namespace (include "cniscope.operator" .) | quote }}
    {{- with .Values.reader.env }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  resources:
    # 25 MiB, and 10 more while it is asked.
    {{- toYaml .Values.reader.resources | nindent 4 }}
  # What anybody's container may do, and less.
  securityContext:
    runAsUser: {{ include "cniscope.reader" . }}
    runAsGroup: {{ include "cniscope.reader" . }}
    runAsNonRoot: true
    privileged: false
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: ["ALL"]
    seccompProfile:
      type: RuntimeDefault
    # Processes of two types may not talk to each other. Without SELinux on the node this is ignored.
    seLinuxOptions:
      type: {{ (include "cniscope.platform" . | fromYaml).seLinuxType | quote }}
  terminationMessagePolicy: FallbackToLogsOnError
  volumeMounts:
    # To connect does not write.
    - name: read
      mountPath: {{ include "cniscope.readDir" . }}
      readOnly: true
    {{- include "cniscope.apiMount" . | nindent 4 }}
{{- end }}
