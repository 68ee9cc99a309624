{{- /* The configuration file of the daemon: the keys of values.config, and where it serves its metrics. */ -}}
{{- define "drivebay.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- with .Values.metrics -}}
{{- if .enabled -}}
{{- $_ := set $config "listen" (printf ":%d" (int .port)) -}}
{{- if .insecure -}}
{{- $_ := set $config "http" (dict "insecure" true) -}}
{{- else -}}
{{- $dir := include "drivebay.httpDir" $ -}}
{{- $_ := set $config "http" (dict "certFile" (print $dir "/tls.crt") "keyFile" (print $dir "/tls.key") "tokenFile" (print $dir "/token")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.replication.enabled .Values.replication.secret -}}
{{- $_ := set $config "replication" (merge (dict "secretFile" (print (include "drivebay.replicationDir" .) "/replicationSecret")) (get $config "replication" | default dict)) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{- /* Directory of the secret of replicated volumes in the container of the daemon. */ -}}
{{- define "drivebay.replicationDir" -}}
/etc/drivebay-replication
{{- end -}}

{{- /* Directory of the certificate and the token of HTTP in the container of the daemon. */ -}}
{{- define "drivebay.httpDir" -}}
/etc/drivebay-http
{{- end -}}
