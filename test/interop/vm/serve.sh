# Run what comes in on the second serial port of a virtual machine. A request is one line, the
# length of a shell script in base64 and that; the answer is one line, its exit status and its
# output in base64, or "again". See kernelvm.py for the other end.
stty -F /dev/ttyS1 raw -echo
exec < /dev/ttyS1 > /dev/ttyS1
echo ready
while read -r length request; do
    # An emulated serial port that is busy may lose a byte.
    if [ "${#request}" != "$length" ]; then
        echo again
        continue
    fi
    echo "$request" | base64 -d > /run/request
    /usr/bin/sh /run/request < /dev/null > /run/output 2>&1
    echo "$? $(base64 -w 0 /run/output)"
done
