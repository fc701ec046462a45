{{/* The options that cniscope reads again without a restart, generated from pkg/config. */}}
{{- define "cniscope.liveOptions" -}}
sampling.ratio sampling.parent_based sampling.rule sampling.annotation_namespaces sampling.per_second sampling.keep slow.command slow.call slow.agent slow.lock slow.baseline slow.floor slow.rule trace.fold_commands export.otlp.endpoint export.otlp.insecure export.otlp.ca export.otlp.cert export.otlp.key export.otlp.headers export.otlp.compression export.otlp.timeout export.file.path export.file.max_bytes relay.upstream probe.enabled probe.detail log.level
{{- end }}
