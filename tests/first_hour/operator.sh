# An operator who was given a model folder: first for the office, then behind nginx with keys and metrics.
# with: translator nginx
## start/first-server.md
dragoman keys add office > office.key
dragoman serve runs/ende --languages en-de --host 0.0.0.0 --keys keys.db 2> server.log &
curl --silent --fail --retry 40 --retry-delay 1 --retry-connrefused localhost:5000/health/ready
grep colleagues server.log
kill %1 && wait %1
## paths/operator.md
dragoman keys add editor --tokens-per-minute 100000 > editor.key
cat > serve.yaml <<'END'
port: 5000
models: [{path: runs/ende, source: en, target: de}]
access:
  keys: keys.db
  trusted_proxies: [127.0.0.1]     # nginx: quotas are counted by its clients' addresses
limits: {shutdown_seconds: 120}    # documents are finished before a restart
END
dragoman serve --config serve.yaml 2> server.log &
curl --silent --retry 20 --retry-connrefused --retry-delay 1 localhost:5000/health/ready
openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -keyout key.pem -out certificate.pem 2> openssl.log
cat > nginx.conf <<'END'
pid nginx.pid;
error_log nginx.log;
events {}
http {
    access_log off;
    server {
        listen 127.0.0.1:8443 ssl;
        ssl_certificate certificate.pem;
        ssl_certificate_key key.pem;
        client_max_body_size 11m;            # limits.file_bytes
        proxy_read_timeout 1210s;            # limits.file_seconds per million characters
        proxy_buffering off;                 # sentences are streamed
        proxy_set_header Host $http_host;
        proxy_set_header X-Forwarded-For $remote_addr;
        proxy_set_header X-Forwarded-Proto $scheme;
        proxy_set_header X-Forwarded-Host $http_host;
        location / { proxy_pass http://127.0.0.1:5000; }
    }
}
END
nginx -p "$PWD" -c "$PWD/nginx.conf"
curl --silent --cacert certificate.pem https://localhost:8443/translate \
    -d q='A dog.' -d source=en -d target=de
curl --silent --cacert certificate.pem https://localhost:8443/translate \
    -d q='A dog.' -d source=en -d target=de -H "Authorization: Bearer $(cat editor.key)"
curl --silent localhost:5000/metrics | grep '^dragoman_failed_requests_total'
nginx -p "$PWD" -c "$PWD/nginx.conf" -s stop
kill %1
