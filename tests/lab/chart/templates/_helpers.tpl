{{- define "network-operator.fullname" -}}
{{- default (default .Chart.Name .Values.operator.nameOverride) .Values.operator.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "network-operator.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.operator.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "network-operator.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{ include "network-operator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
