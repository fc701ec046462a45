{{/* The folder that cniscope and the reader share: one socket is in it. */}}
{{- define "cniscope.readDir" -}}/run/cniscope-read{{- end }}

{{/* The user and group of the query sidecar. No image and no distribution is known to use 60947: not distroless
     (65532, 65534), and systemd's table leaves 60578 to 61183 unused. Above 65535 a Pod's user namespace may have it. */}}
{{- define "cniscope.reader" -}}60947{{- end }}

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
  image: {{ include "cniscope.image" (merge (dict "appVersion" .Chart.AppVersion "global" .Values.global) .Values.image) | quote }}
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
    {{- if .Values.reader.events.enabled }}
    {{- include "cniscope.apiMount" . | nindent 4 }}
    {{- end }}
{{- end }}
