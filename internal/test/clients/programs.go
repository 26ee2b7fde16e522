package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// programs are the clients that are not written in Go, as far as they are installed.
func programs(s *server) []client {
	var list []client
	add := func(name, protocol, jobs string, run func(e *env) error, version string, command ...string) {
		if found, ok := installed(command[0], version, command[1:]...); ok {
			list = append(list, client{name, found, protocol, jobs, run})
		} else {
			fmt.Println("left out:", name)
		}
	}
	const number = `(\d+\.\d+\.\d+)`
	for _, protocol := range []string{"RESP2", "RESP3"} {
		flag := "-" + protocol[4:]
		add("redis-cli", protocol, "commands, --pipe, --scan, WATCH, blocking, subscriber, NOPERM, restart",
			func(e *env) error { return redisCLI(e, flag) }, number, "redis-cli", "--version")
		for _, name := range []string{"ioredis", "redis"} {
			shown := strings.ReplaceAll("node-"+name, "node-io", "io")
			add(shown, protocol, usualJobs, func(e *env) error { return script(e, "node", "clients.mjs", name, flag) }, number,
				"node", "-p", "require('./node_modules/"+name+"/package.json').version")
		}
	}
	add("redis-benchmark", "RESP2", "20 kinds of commands, pipelined", redisBenchmark, number, "redis-benchmark", "--version")
	add("redis-py", "RESP2", usualJobs, func(e *env) error { return script(e, python, "clients.py", "PythonParser") }, number, python, "-c", pythonVersion("redis"))
	add("hiredis (redis-py)", "RESP2", usualJobs, func(e *env) error { return script(e, python, "clients.py", "HiredisParser") }, number, python, "-c", pythonVersion("hiredis"))
	add("redis_exporter", "RESP2", "all metrics, as a user with its documented rules", exporter, "Exporter v?"+number, "prometheus-redis-exporter", "--version")
	return list
}

const python = "/usr/bin/python3"

// pythonVersion is a program that prints the version of a module.
func pythonVersion(module string) string {
	return "import importlib.metadata as m, " + module + "; print(m.version('" + module + "'))"
}

// installed returns the version that a command prints, the first group of a regular expression.
func installed(name, version string, arguments ...string) (found string, ok bool) {
	out, err := exec.Command(name, arguments...).CombinedOutput()
	match := regexp.MustCompile(version).FindSubmatch(out)
	if err != nil || match == nil {
		return "", false
	}
	return string(match[1]), true
}

// script runs a program with what it needs to connect.
func script(e *env, name string, arguments ...string) error {
	return converse(e, []string{
		"CLIENT_PORT=" + e.server.port, "CLIENT_CA=" + e.server.ca, "CLIENT_USER=" + e.user, "CLIENT_PASSWORD=" + e.password, "CLIENT_PREFIX=" + e.prefix,
	}, name, arguments...)
}

// converse runs a program that prints "restart" where it wants the server restarted, and reads a line when that has been done.
func converse(e *env, variables []string, name string, arguments ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, arguments...)
	cmd.Env = append(os.Environ(), variables...)
	var failure bytes.Buffer
	cmd.Stderr = &failure
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	restarted := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "restart" {
			e.restart()
			restarted = true
			if _, err := io.WriteString(in, "restarted\n"); err != nil {
				failure.WriteString(err.Error())
			}
		}
	}
	err = cmd.Wait()
	if err == nil && !restarted {
		err = errors.New("it has not waited for the restart")
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, lastLines(failure.String()))
	}
	return nil
}

func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}

// command returns a program of Redis with the options of TLS and the user.
func (e *env) command(ctx context.Context, name, user string, arguments ...string) *exec.Cmd {
	options := []string{"-h", "localhost", "-p", e.server.port, "--tls", "--cacert", e.server.ca, "--user", user}
	if name == "redis-benchmark" {
		options = append(options, "-a", e.password) // it has no variable for it
	}
	cmd := exec.CommandContext(ctx, name, append(options, arguments...)...)
	cmd.Env = append(os.Environ(), "REDISCLI_AUTH="+e.password)
	return cmd
}

func redisCLI(e *env, protocol string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	defer cancel()
	run := func(in string, arguments ...string) (string, error) {
		cmd := e.command(ctx, "redis-cli", e.user, append([]string{protocol}, arguments...)...)
		cmd.Stdin = strings.NewReader(in)
		out, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	var commands strings.Builder
	for i := range pipelined {
		fmt.Fprintf(&commands, "SET %s%d %d\r\n", e.prefix, i, i)
	}
	list := e.prefix + "list"
	for _, step := range []struct {
		in        string
		arguments []string
		want      string
	}{
		{"", []string{"SET", "foreign", "1"}, "NOPERM"},
		{commands.String(), []string{"--pipe"}, fmt.Sprintf("errors: 0, replies: %d", pipelined)},
		{bulk, []string{"-x", "SET", e.prefix + "bulk"}, "OK"},
		{"", []string{"STRLEN", e.prefix + "bulk"}, fmt.Sprint(bulkValue)},
		{"", []string{"HSET", e.prefix + "hash", "field", "value"}, "1"},
		{"", []string{"HGETALL", e.prefix + "hash"}, "field"},
		{"WATCH " + e.prefix + "1\nMULTI\nINCR " + e.prefix + "1\nEXEC\n", nil, "OK\nOK\nQUEUED\n2"},
		{"", []string{"BLPOP", e.prefix + "none", "0.2"}, ""},
		{"", []string{"RPUSH", list, "element"}, "1"},
		{"", []string{"BLPOP", list, "5"}, list + "\nelement"},
	} {
		got, err := run(step.in, step.arguments...)
		if err != nil || !strings.Contains(got, step.want) {
			return fmt.Errorf("redis-cli %s %.200q: %w, got %.300q, want %q", step.arguments, step.in, err, got, step.want)
		}
	}
	found, err := run("", "--scan", "--pattern", e.prefix+"*")
	if err := want("redis-cli --scan", len(strings.Fields(found)), pipelined+2, err); err != nil {
		return err
	}
	if err := redisCLISubscribes(ctx, e, protocol, run); err != nil {
		return err
	}
	// One that is open during the restart connects again.
	cmd := e.command(ctx, "redis-cli", e.user, protocol)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return err
	}
	_, err = io.WriteString(in, "SET "+e.prefix+"before 17\n")
	time.Sleep(300 * time.Millisecond)
	e.restart()
	// The first command finds the connection closed, and is not repeated: redis-cli leaves that to its user.
	_, err2 := io.WriteString(in, "PING\nGET "+e.prefix+"before\nECHO end\n")
	if err := errors.Join(err, err2, in.Close(), cmd.Wait()); err != nil {
		return fmt.Errorf("%w: %s", err, out.String())
	}
	if text := out.String(); !strings.HasPrefix(text, "OK\n") || !strings.HasSuffix(text, "17\nend\n") {
		return fmt.Errorf("a redis-cli that was open during the restart: %q", text)
	}
	return nil
}

// redisCLISubscribes sees a message arrive at a subscriber.
func redisCLISubscribes(ctx context.Context, e *env, protocol string, run func(in string, arguments ...string) (string, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	cmd := e.command(ctx, "redis-cli", e.user, protocol, "SUBSCRIBE", e.prefix+"channel")
	out, err := cmd.StdoutPipe()
	if err != nil {
		cancel()
		return err
	}
	if err := cmd.Start(); err != nil {
		cancel()
		return err
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // it is killed
	}()
	seen := make(chan bool, 1)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.Contains(lines.Text(), "a message") {
				seen <- true
			}
		}
	}()
	if err := eventually("redis-cli SUBSCRIBE", func() error {
		got, err := run("", "PUBLISH", e.prefix+"channel", "a message")
		return want("receivers", got, "1", err)
	}); err != nil {
		return err
	}
	select {
	case <-seen:
		return nil
	case <-time.After(patience):
		return errors.New("redis-cli SUBSCRIBE: no message")
	}
}

func redisBenchmark(e *env) error {
	e.restart() // a restart in its middle would end it
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	defer cancel()
	out, err := e.command(ctx, "redis-benchmark", "bench", "-n", "1000", "-c", "10", "-P", "8", "-q").CombinedOutput()
	text := string(out)
	if kinds := strings.Count(text, "requests per second"); err != nil || kinds != 20 || strings.Contains(text, "rror") {
		return fmt.Errorf("%d kinds: %w: %s", kinds, err, lastLines(text))
	}
	return nil
}

// exporter reads all metrics twice, before and after the restart. It needs a key of each type to look at.
func exporter(e *env) error {
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	defer cancel()
	types := []string{"SET string 17", "RPUSH list a b", "SADD set a b", "ZADD zset 1 a 2 b", "HSET hash f v", "XADD stream * f v", "PFADD hll a"}
	group := []string{"XGROUP CREATE exporter:stream group 0", "XREADGROUP GROUP group consumer STREAMS exporter:stream >"}
	var commands, keys strings.Builder
	for _, line := range types {
		words := strings.Fields(line)
		words[1] = "exporter:" + words[1]
		fmt.Fprintln(&commands, strings.Join(words, " "))
		fmt.Fprintf(&keys, ",%s", words[1])
	}
	cli := e.command(ctx, "redis-cli", "bench")
	cli.Stdin = strings.NewReader(commands.String() + strings.Join(group, "\n"))
	if out, err := cli.CombinedOutput(); err != nil || strings.Contains(string(out), "ERR") {
		return fmt.Errorf("%w: %s", err, out)
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "prometheus-redis-exporter", "-redis.addr", "rediss://"+e.server.address(), "-redis.user", "exporter", "-redis.password", e.password,
		"-tls-ca-cert-file", e.server.ca, "-web.listen-address", "127.0.0.1:"+port, "-include-config-metrics", "-include-system-metrics", "-export-client-list",
		"-export-client-port", "-set-client-name", "-ping-on-connect", "-debug",
		"-check-single-keys", keys.String()[1:], "-check-single-streams", "exporter:stream", "-check-keys", "exporter:*", "-count-keys", "exporter:*", "-check-key-groups", "^(exporter):")
	var logged bytes.Buffer
	cmd.Stdout, cmd.Stderr = &logged, &logged
	if err := cmd.Start(); err != nil {
		return err
	}
	read := func() error { return readMetrics("http://127.0.0.1:" + port + "/metrics") }
	err = eventually("metrics", read)
	e.restart()
	before := logged.Len()
	err = errors.Join(err, eventually("metrics after the restart", read))
	cancel()
	_ = cmd.Wait() // it is killed
	complaints := 0
	for line := range strings.Lines(logged.String()[:before]) {
		if complaints < 5 && (strings.Contains(line, "level=error") || strings.Contains(line, "level=warn") || strings.Contains(line, "err: ERR") || strings.Contains(line, "NOPERM ")) {
			complaints++
			err = errors.Join(err, errors.New(strings.TrimSpace(line)))
		}
	}
	return err
}

func readMetrics(url string) error {
	reply, err := http.Get(url)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		return err
	}
	text := string(body)
	for _, wanted := range []string{
		"\nredis_up 1\n", "redis_exporter_last_scrape_error{err=\"\"} 0\n", "redis_connected_clients ", "redis_memory_used_bytes ", "redis_commands_total{cmd=\"",
		"redis_db_keys{db=\"db0\"} ", "redis_slowlog_length ", "redis_config_maxmemory ", "redis_latency_percentiles_usec_count{", "redis_start_time_seconds ",
		"redis_connected_clients_details{", "redis_key_size{db=\"db0\",key=\"exporter:hash\"} 1\n",
		"redis_stream_length{", "redis_stream_group_consumer_messages_pending{", "redis_keys_count{", "redis_number_of_distinct_key_groups{",
	} {
		if !strings.Contains(text, wanted) {
			return fmt.Errorf("the metrics do not have %q: %s", wanted, sample(text, wanted))
		}
	}
	return nil
}

// sample is what the metrics have instead.
func sample(text, wanted string) string {
	name, _, _ := strings.Cut(strings.TrimSpace(wanted), "{")
	var lines []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, strings.TrimSpace(name)) || strings.Contains(line, "scrape_error") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}
