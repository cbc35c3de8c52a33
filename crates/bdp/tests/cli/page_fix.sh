export BDP_TUNE_JOURNAL=$PWD/journal BDP_PAGE_TOKEN=0123456789abcdef0
setting() { cat /proc/sys/net/ipv4/tcp_rmem; }
ask() { curl -s -H "Authorization: Bearer $BDP_PAGE_TOKEN" "http://127.0.0.1:5280/api/$@"; }
setting > before
bdp page --no-browser --listen 127.0.0.1:5280 --store s.db > page.txt &
page=$!
until grep -q token page.txt; do sleep 0.05; done
ask jobs -d '{"command":["fix","far","--direction","from","-t","4","--runs","1"],"secrets":{"token":"t"}}' > job.json
ask jobs/1/events -N > events &
: > questions
until ask jobs/1 > state && grep -q '"state":"ended"' state; do
    if grep -q '"question":{' state; then
        cat state >> questions
        test -e asked || setting > asked
        number=$(grep -o '"number":[0-9]*' state)
        ask jobs/1/answer -d "{\"question\":${number#*:},\"yes\":true}"
    fi
    sleep 0.2
done
setting > fixed
ask answer -d '{"command":["tune","revert"]}' > revert.json
setting > reverted
kill -TERM $page
wait
