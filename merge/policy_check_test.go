package merge_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/merge"
)

// TestInvalidPolicies: New refuses them, and names the field.
func TestInvalidPolicies(t *testing.T) {
	for _, tt := range []struct {
		field string // "": valid
		p     merge.Policy
	}{
		{"TriggerRatio", merge.Policy{TriggerRatio: -0.1}},
		{"TriggerRatio", merge.Policy{TriggerRatio: 60}},
		{"TriggerRatio", merge.Policy{TriggerRatio: math.NaN()}},
		{"TriggerBytes", merge.Policy{TriggerBytes: -1}},
		{"IncludeRatio", merge.Policy{IncludeRatio: -0.1}},
		{"IncludeRatio", merge.Policy{IncludeRatio: math.Inf(1)}},
		{"IncludeRatio", merge.Policy{IncludeRatio: math.NaN()}},
		{"IncludeBytes", merge.Policy{IncludeBytes: -1}},
		{"SmallBytes", merge.Policy{SmallBytes: -1}},
		{"SmallCount", merge.Policy{SmallCount: -1}},
		{"", merge.Policy{}},
		{"", merge.Policy{TriggerRatio: 1, IncludeRatio: 1, TriggerBytes: 1, IncludeBytes: 1, SmallBytes: 1, SmallCount: 1, BytesPerSecond: -1}},
	} {
		switch _, err := merge.New(nil, tt.p, nil); {
		case tt.field == "" && err != nil:
			t.Errorf("%+v: %v", tt.p, err)
		case tt.field != "" && (!errors.Is(err, bitcask.ErrOption) || !strings.Contains(err.Error(), "Policy."+tt.field+" is ")):
			t.Errorf("%+v: %v, want an error that names %s", tt.p, err, tt.field)
		}
	}
}
