# As the unit of the service has it: LimitNOFILE
ulimit -n "${FILES:-40}"
exec ./program
