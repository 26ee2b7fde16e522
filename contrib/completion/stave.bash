# bash completion for stave
_stave() {
	local cur=${COMP_WORDS[COMP_CWORD]} words=''
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ] || [ "${COMP_WORDS[1]}" = help ]; then
		COMPREPLY=($(compgen -W 'shell exec cli serve import export merge check repair backup archive restore stats inspect dump tail orphans doctor top bench completion man version help help' -- "$cur"))
		return
	fi
	[[ $cur == -* ]] || return
	case ${COMP_WORDS[1]} in
	shell) words='--dir --addr --url --connection --user --tls --cacert --cert --key --sni --db --resp3 --output --raw --no-raw --json --csv --sync --read-only --follow --keep-going --quiet --help' ;;
	exec) words='--dir --addr --url --connection --user --tls --cacert --cert --key --sni --db --resp3 --output --raw --no-raw --json --csv --sync --stdin-arg --stdin-tag --repeat --interval --keep-going --pipe --scan --bigkeys --memkeys --keystats --latency --hotkeys --stat --pattern --type --help' ;;
	cli) words='--host --port --socket --pass --url --connection --user --tls --cacert --cert --key --sni --db --resp3 --output --raw --no-raw --json --csv --stdin-arg --stdin-tag --repeat --interval --keep-going --pipe --scan --bigkeys --memkeys --keystats --latency --hotkeys --stat --pattern --type --help' ;;
	serve) words='--dir --config --check-config --addr --sync --http --loops --transport --read-damaged --follow --quiet --archive --replicaof --port --bind --unixsocketperm --aclfile --protected-mode --tls-port --tls-cert-file --tls-key-file --tls-ca-cert-file --tls-auth-clients --tls-protocols --help' ;;
	import) words='--key-template --type --value --score --separator --from --match --rate --state --verify --dir --db --keep-going --sync --json --quiet --help' ;;
	export) words='--dir --format --rdb-version --db --match --sort --to --rate --keep-going --quiet --help' ;;
	merge) words='--dir --dry-run --all --json --quiet --help' ;;
	check) words='--dir --json --replay --quiet --help' ;;
	repair) words='--dir --out --json --quiet --help' ;;
	backup) words='--dir --incremental --json --quiet --help' ;;
	archive) words='--dir --json --quiet --help' ;;
	restore) words='--archive --to --store --list --json --quiet --help' ;;
	stats) words='--dir --json --watch --every --count --help' ;;
	inspect) words='--dir --biggest --json --html --quiet --help' ;;
	dump) words='--values --json --help' ;;
	tail) words='--dir --since --last --follow --db --match --help' ;;
	orphans) words='--dir --json --help' ;;
	doctor) words='--dir --json --addr --user --tls --cacert --cert --key --sni --help' ;;
	top) words='--host --port --addr --user --tls --cacert --cert --key --sni --every --count --help' ;;
	bench) words='--size --threads --sync --only --json --quiet --help' ;;
	completion) words='--help' ;;
	man) words='--help' ;;
	version) words='--help' ;;
	help) words='--help' ;;
	esac
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _stave stave
