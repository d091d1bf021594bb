#!/bin/sh
# Prints the table of generators and checkers of the interface's description in docs/interoperability.md. Needs Python 3.11,
# Node.js 20, Go, Maven, Java 17, and their registries.
# Usage: peers/generators/run.sh http://127.0.0.1:8080
set -eu
node=${1:?usage: run.sh the address of a node}
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
curl --silent --fail "$node/v1/openapi.json" >api.json
curl --silent --fail "$node/v1/asyncapi.json" >streams.json
printf 'extends: ["spectral:oas", "spectral:asyncapi"]\n' >.spectral.yaml
xargs npm install --silent --no-audit --no-fund <"$here/packages.txt" >/dev/null

# What a command says last of an error, as a cell of the table.
ends() {
    if "$@" >log 2>&1; then echo "makes it"; else echo "fails: $(grep -iE 'error|exception|out of range|problem' log | tail -1 | cut -c1-100)"; fi
}
types() {
    npx tsc --noEmit --skipLibCheck --target es2022 --module esnext --moduleResolution bundler "$1" >log 2>&1 || true
    if grep -q 'error TS' log; then
        echo "$(grep -c 'error TS' log) errors of types, the first: $(grep -m 1 -o "error TS.*" log | cut -c1-100)"
    else
        echo "its types hold"
    fi
}
row() { echo "| $1 | $2 | $3 |"; }
version() { grep -F "$1@" "$here/packages.txt" | sed 's/.*@//'; }

echo '| tool | what | what it does |'
echo '|---|---|---|'
did=$(ends npx swagger-typescript-api generate --path api.json --output sta --name api.ts)
row "swagger-typescript-api $(version swagger-typescript-api)" client "$did, $(types sta/api.ts)"
did=$(ends npx openapi-zod-client api.json --output zod.ts)
row "openapi-zod-client $(version openapi-zod-client)" client "$did, $(types zod.ts)"
did=$(ends npx oazapfts api.json oaz.ts)
row "oazapfts $(version oazapfts)" client "$did, $(types oaz.ts)"
did=$(ends node node_modules/openapi-typescript-codegen/bin/index.js --input api.json --output codegen)
row "openapi-typescript-codegen $(version openapi-typescript-codegen)" client "$did, $(types codegen/index.ts)"
did=$(ends npx orval --input api.json --output orval.ts)
row "orval $(version orval), axios $(version axios)" client "$did, $(types orval.ts)"
npx redocly lint api.json >log 2>&1 || true
row "redocly $(version @redocly/cli)" "recommended rules" "$(grep -o 'by the [a-z0-9-]* rule' log | sort | uniq -c | awk '{print $1, $4}' | paste -sd, | sed 's/,/, /g')"
for file in api.json streams.json; do
    npx spectral lint "$file" >log 2>&1 || true
    row "spectral $(version @stoplight/spectral-cli)" "its rules, $file" "$(grep -oE '[0-9]+ problems.*' log)"
done

python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check openapi-python-client==0.29.1 datamodel-code-generator==0.89.0 openapi-spec-validator==0.9.0
row "openapi-spec-validator 0.9.0" "its rules" "$(venv/bin/openapi-spec-validator api.json 2>&1 | tail -1 | cut -c1-80)"
row "datamodel-code-generator 0.89.0" "pydantic models" "$(ends venv/bin/datamodel-codegen --input api.json --input-file-type openapi --output models.py --output-model-type pydantic_v2.BaseModel)"
row "openapi-python-client 0.29.1" client "$(ends venv/bin/openapi-python-client generate --path api.json --meta none --output-path client)"
python3 -m venv other
other/bin/pip install --quiet --disable-pip-version-check 'clientele[cli]==2.3.1'
did=$(ends other/bin/clientele start-api -f api.json -o made_by_clientele --regen)
imports=$(other/bin/python -c 'import made_by_clientele.client' 2>&1 | tail -1 | cut -d: -f1)
row "clientele 2.3.1" client "$did; importing it $([ -n "$imports" ] && echo "raises $imports" || echo works): \`findings/clientele-alias-order.sh\`"

mkdir go
(cd go && go mod init walras/generators && go get github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 github.com/ogen-go/ogen/cmd/ogen@v1.25.0 \
    && go build -o .. github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen github.com/ogen-go/ogen/cmd/ogen) >go.log 2>&1
row "oapi-codegen 2.8.2" client "$(ends ./oapi-codegen -generate types,client -package api -o api.go api.json)"
row "ogen 1.25.0" client "$(ends ./ogen --target ogen --package api --clean api.json)"

jar=org.openapitools:openapi-generator-cli:7.25.0
mvn --quiet --batch-mode dependency:copy -Dartifact=$jar -DoutputDirectory="$folder" >mvn.log
for language in java go typescript-fetch rust; do
    row "openapi-generator 7.25.0" "client for $language" "$(ends java -jar openapi-generator-cli-7.25.0.jar generate -i api.json -g $language -o "gen-$language")"
done
