# PowerShell completion for stave
Register-ArgumentCompleter -Native -CommandName stave -ScriptBlock {
	param($wordToComplete, $commandAst, $cursorPosition)
	$commands = [ordered]@{
		'shell' = '--dir --addr --url --connection --user --tls --cacert --cert --key --sni --db --resp3 --output --raw --no-raw --json --csv --sync --read-only --follow --keep-going --quiet --help'
		'exec' = '--dir --addr --url --connection --user --tls --cacert --cert --key --sni --db --resp3 --output --raw --no-raw --json --csv --sync --stdin-arg --stdin-tag --repeat --interval --keep-going --pipe --scan --bigkeys --memkeys --keystats --latency --hotkeys --stat --pattern --type --help'
		'cli' = '--host --port --socket --pass --url --connection --user --tls --cacert --cert --key --sni --db --resp3 --output --raw --no-raw --json --csv --stdin-arg --stdin-tag --repeat --interval --keep-going --pipe --scan --bigkeys --memkeys --keystats --latency --hotkeys --stat --pattern --type --help'
		'serve' = '--dir --config --check-config --addr --sync --http --loops --transport --read-damaged --follow --quiet --archive --replicaof --port --bind --unixsocketperm --aclfile --protected-mode --tls-port --tls-cert-file --tls-key-file --tls-ca-cert-file --tls-auth-clients --tls-protocols --help'
		'import' = '--key-template --type --value --score --separator --from --match --rate --state --verify --dir --db --keep-going --sync --json --quiet --help'
		'export' = '--dir --format --rdb-version --db --match --sort --to --rate --keep-going --quiet --help'
		'merge' = '--dir --dry-run --all --json --quiet --help'
		'check' = '--dir --json --replay --quiet --help'
		'repair' = '--dir --out --json --quiet --help'
		'backup' = '--dir --incremental --json --quiet --help'
		'archive' = '--dir --json --quiet --help'
		'restore' = '--archive --to --store --list --json --quiet --help'
		'stats' = '--dir --json --watch --every --count --help'
		'inspect' = '--dir --biggest --json --html --quiet --help'
		'dump' = '--values --json --help'
		'tail' = '--dir --since --last --follow --db --match --help'
		'orphans' = '--dir --json --help'
		'doctor' = '--dir --json --addr --user --tls --cacert --cert --key --sni --help'
		'top' = '--host --port --addr --user --tls --cacert --cert --key --sni --every --count --help'
		'bench' = '--size --threads --sync --only --json --quiet --help'
		'completion' = '--help'
		'man' = '--help'
		'version' = '--help'
		'help' = '--help'
		'help' = ''
	}
	$typed = @($commandAst.CommandElements | ForEach-Object { $_.ToString() })
	$choices = if ($typed.Count -le 1 -or ($typed.Count -eq 2 -and $wordToComplete) -or $typed[1] -eq 'help') {
		$commands.Keys
	} elseif ($wordToComplete.StartsWith('-')) {
		"$($commands[$typed[1]])".Split(' ')
	}
	$choices | Where-Object { $_ -like "$wordToComplete*" } | ForEach-Object {
		[System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
	}
}
