{{- define "drivebay.image" -}}
{{- $i := index .root.Values.images .name -}}
{{- if $i.digest -}}
{{ $i.repository }}@{{ $i.digest }}
{{- else -}}
{{ $i.repository }}:{{ $i.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "drivebay.selector" -}}
app.kubernetes.io/name: drivebay
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "drivebay.labels" -}}
{{ include "drivebay.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- /* The labels of the chart and those of the values, which win: an operator may select its objects by any label. */ -}}
{{- define "drivebay.labelsAnd" -}}
{{ toYaml (mergeOverwrite (include "drivebay.labels" .root | fromYaml) (.labels | default dict)) }}
{{- end -}}

{{- /* What is the same in each sidecar and in the controller: the image, the resources (of a sidecar, if no others are named), and no right but to connect to the socket, which is root's. */ -}}
{{- define "drivebay.sidecar" -}}
image: {{ include "drivebay.image" . }}
imagePullPolicy: {{ .root.Values.imagePullPolicy }}
resources: {{- toYaml (index .root.Values.resources (get . "resources" | default "sidecar")) | nindent 2 }}
securityContext:
  runAsUser: 0 # the socket of CSI is 0600, of root
  allowPrivilegeEscalation: false # no program of the image gains rights that the sidecar does not have
  readOnlyRootFilesystem: true # the sidecars write to sockets and to the API only
  capabilities: {drop: [ALL]} # the owner of a socket needs none to connect to it
  seccompProfile: {type: RuntimeDefault} # the system calls that the container runtime allows by default
{{- end -}}

{{- /* Name of the ConfigMap's file and of the sockets' directory on the node. */ -}}
{{- define "drivebay.pluginDir" -}}
{{ .Values.kubeletDir }}/plugins/drivebay.io
{{- end -}}
