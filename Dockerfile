# The image of cniscope: the static program and nothing else, so that there is nothing
# else to keep up to date. `make image` builds it for both architectures without Docker
# (test/image reads this file, and knows only the instructions in it). With Docker:
#
#   make binaries
#   docker buildx build --platform linux/amd64,linux/arm64 --tag ghcr.io/cniscope/cniscope:v0.1.0 .
FROM scratch
ARG TARGETARCH
LABEL org.opencontainers.image.title="cniscope"
LABEL org.opencontainers.image.description="Traces of CNI calls: where the seconds of a pod's network setup went"
LABEL org.opencontainers.image.source="https://github.com/cniscope/cniscope"
LABEL org.opencontainers.image.licenses="Apache-2.0"
COPY bin/linux-${TARGETARCH}/cniscope /cniscope
# root: the sockets of containerd and NRI belong to root. By number, since there is no
# /etc/passwd to look a name up in. What root may do is for the pod to say: see
# examples/kubernetes/cniscope.yaml.
USER 0:0
ENTRYPOINT ["/cniscope"]
CMD ["run"]
