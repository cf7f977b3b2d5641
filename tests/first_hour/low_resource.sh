# Somebody with a few thousand pairs of a small language: is it enough, is it good, and can others use it?
# with: corpus
## paths/low-resource.md
dragoman data check --source train.en --target train.de
dragoman train --source train.en --target train.de --out runs/small \
    data.source_language=en data.target_language=de train.metric=chrf
dragoman evaluate runs/small
dragoman translate runs/small --input test.en --output test.translated
dragoman serve runs/small --languages en-de &
curl --silent --retry 40 --retry-delay 1 --retry-connrefused localhost:5000/health/ready
curl --silent localhost:5000/translate --json '{"q": "The dog is sleeping.", "source": "en", "target": "de"}'
## start/first-server.md
kill $!
