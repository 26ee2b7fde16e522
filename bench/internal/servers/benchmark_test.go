package servers

import "testing"

func TestReadRun(t *testing.T) {
	const head = "\"test\",\"rps\",\"avg_latency_ms\",\"p99_latency_ms\"\n"
	if one, err := readRun(head + "\"SET\",\"1000.50\",\"0.1\",\"0.2\"\n"); err != nil || one.Rate != 1000.5 || one.P99 != 0.2 {
		t.Errorf("%+v, %v", one, err)
	}
	for _, out := range []string{"", head, head + "\"SET\",\"inf\",\"x\",\"y\"\n", "a,b\n1,2\n"} {
		if one, err := readRun(out); err == nil {
			t.Errorf("%q: %+v", out, one)
		}
	}
}
