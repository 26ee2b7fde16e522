package structures_test

import (
	"testing"

	"github.com/stavedb/stave/structures"
)

// call is a method on a key that must refuse it.
type call func(key string) error

func (m *memory) stringCalls() []call {
	return []call{
		func(k string) error { _, _, err := m.string(k).Get(nil); return err },
		func(k string) error { _, err := m.string(k).Len(); return err },
		func(k string) error { _, err := m.string(k).Set(nil, structures.SetOptions{Get: true}); return err },
		func(k string) error { _, err := m.string(k).Range(nil, 0, -1); return err },
		func(k string) error { _, err := m.string(k).Append([]byte("x")); return err },
		func(k string) error { _, err := m.string(k).Incr(1); return err },
		func(k string) error { _, err := m.string(k).IncrFloat([]byte("1")); return err },
		func(k string) error { _, _, err := m.string(k).GetAndDelete(); return err },
		func(k string) error { _, _, err := m.string(k).GetAndExpire(nil, 2, 1); return err },
		func(k string) error { _, _, err := m.string(k).GetAndPersist(nil); return err },
		func(k string) error { _, err := m.string(k).SetRange(1, []byte("x")); return err },
		func(k string) error { _, err := m.hyperLogLog(k).Add(nil); return err },
		func(k string) error { _, _, err := structures.CountHyperLogLogs(m, []string{k}, true); return err },
		func(k string) error {
			_, _, err := structures.CountHyperLogLogs(m, []string{"none", k}, true)
			return err
		},
		func(k string) error { return structures.MergeHyperLogLogs(m, "dest", []string{k}) },
		func(k string) error { _, err := m.bitmap(k).Get(1); return err },
		func(k string) error { _, err := m.bitmap(k).Set(1, true); return err },
		func(k string) error { _, err := m.bitmap(k).Count(structures.AllBits); return err },
		func(k string) error { _, err := m.bitmap(k).Position(true, structures.AllBits); return err },
		func(k string) error { _, err := m.bitmap(k).Field(nil); return err },
		func(k string) error {
			_, err := m.bitmap(k).Field([]structures.BitfieldOp{{Action: structures.BitfieldSet, Bits: 1}})
			return err
		},
		func(k string) error {
			_, err := structures.CombineBits(m, structures.BitOr, "dest", []string{"none", k})
			return err
		},
	}
}

func (m *memory) hashCalls() []call {
	return []call{
		func(k string) error { _, _, err := m.hash(k).Get(nil, "f"); return err },
		func(k string) error { return m.hash(k).GetMany([]string{"f"}, func(int, []byte) {}) },
		func(k string) error { _, err := m.hash(k).Has("f"); return err },
		func(k string) error { _, err := m.hash(k).Len(); return err },
		func(k string) error { _, err := m.hash(k).Put("f", nil); return err },
		func(k string) error { _, err := m.hash(k).PutAll([]structures.Field{{Name: "f"}}); return err },
		func(k string) error {
			_, _, err := m.hash(k).PutWith([]structures.Field{{Name: "f"}}, structures.FieldDeadline{}, 0, structures.IfAbsent)
			return err
		},
		func(k string) error { _, err := m.hash(k).Delete([]string{"f"}); return err },
		func(k string) error { _, err := m.hash(k).Incr("f", 1); return err },
		func(k string) error { _, err := m.hash(k).IncrFloat("f", []byte("1")); return err },
		func(k string) error { return m.hash(k).Visit(nil, func(_, _ []byte) bool { return true }) },
		func(k string) error { return m.hash(k).VisitFields(nil, func([]byte) bool { return true }) },
		func(k string) error {
			_, err := m.hash(k).Scan(0, structures.ScanOptions{}, func(_, _ []byte) {})
			return err
		},
	}
}

func (m *memory) listCalls() []call {
	return []call{
		func(k string) error { _, err := m.list(k).Len(); return err },
		func(k string) error { _, err := m.list(k).Push(structures.Front, [][]byte{nil}, 0); return err },
		func(k string) error {
			_, err := m.list(k).Push(structures.Back, [][]byte{nil}, structures.IfPresent)
			return err
		},
		func(k string) error { _, _, err := m.list(k).Pop(structures.Back, 1); return err },
		func(k string) error { _, _, err := m.list(k).At(nil, 0); return err },
		func(k string) error { _, err := m.list(k).Set(0, nil); return err },
		func(k string) error { return m.list(k).Visit(0, -1, nil, func([]byte) bool { return true }) },
		func(k string) error { return m.list(k).Trim(0, -1) },
		func(k string) error { _, err := m.list(k).Insert(true, nil, nil); return err },
		func(k string) error { _, err := m.list(k).Remove(0, nil); return err },
		func(k string) error { _, err := m.list(k).Positions(nil, structures.PositionOptions{}); return err },
		func(k string) error {
			_, _, err := m.list(k).Move("none", structures.Front, structures.Back)
			return err
		},
		func(k string) error {
			_, _, err := m.list("list").Move(k, structures.Front, structures.Back)
			return err
		},
		func(k string) error {
			_, _, _, err := structures.PopFirst(m, []string{"none", k}, structures.Front, 1)
			return err
		},
	}
}

func (m *memory) setCalls() []call {
	return []call{
		func(k string) error { _, err := m.set(k).Add([]string{"m"}); return err },
		func(k string) error { _, err := m.set(k).Remove([]string{"m"}); return err },
		func(k string) error { _, err := m.set(k).Has("m"); return err },
		func(k string) error { _, err := m.set(k).Len(); return err },
		func(k string) error { return m.set(k).Visit(nil, func([]byte) bool { return true }) },
		func(k string) error { _, err := m.set(k).Pop(1, noChance); return err },
		func(k string) error {
			return m.set(k).VisitRandom(1, noChance, nil, func([]byte) bool { return true })
		},
		func(k string) error {
			_, err := m.set(k).Scan(0, structures.ScanOptions{}, func([]byte) {})
			return err
		},
		func(k string) error { _, err := m.set(k).Move("none", "m"); return err },
		func(k string) error { _, err := m.set("set").Move(k, "m"); return err },
		func(k string) error { _, err := m.set("to").PutCombined(structures.Union, []string{k}); return err },
		func(k string) error { _, err := structures.CountInter(m, []string{"none", k}, 0, true); return err },
		func(k string) error { return structures.Combine(m, structures.Union, []string{k}, nil) },
		func(k string) error { return structures.Combine(m, structures.Inter, []string{"none", k}, nil) },
		func(k string) error { return structures.Combine(m, structures.Diff, []string{"none", k}, nil) },
	}
}

func (m *memory) zsetCalls() []call {
	return []call{
		func(k string) error {
			_, err := m.zset(k).Add([]structures.Scored{{}}, structures.IfPresent)
			return err
		},
		func(k string) error { _, _, err := m.zset(k).Incr("m", 1, 0); return err },
		func(k string) error { _, err := m.zset(k).Remove([]string{"m"}); return err },
		func(k string) error { _, err := m.zset(k).Len(); return err },
		func(k string) error { _, _, err := m.zset(k).Score("m"); return err },
		func(k string) error { _, _, _, err := m.zset(k).Rank("m", false); return err },
		func(k string) error { _, err := m.zset(k).Count(structures.RankRange{}); return err },
		func(k string) error {
			return m.zset(k).Visit(structures.RankRange{}, nil, func([]byte, float64) bool { return true })
		},
		func(k string) error { _, err := m.zset(k).Pop(1, false); return err },
		func(k string) error { _, err := m.zset(k).RemoveRange(structures.RankRange{}); return err },
		func(k string) error { _, err := m.zset("to").PutRange(k, structures.RankRange{}); return err },
		func(k string) error {
			_, _, _, err := structures.PopFirstScored(m, []string{"none", k}, 1, true)
			return err
		},
		func(k string) error { return m.zset(k).VisitRandom(1, noChance, nil, nil) },
		func(k string) error {
			_, _, err := m.zset(k).Page(nil, structures.RankRange{}, structures.Position{}, 1)
			return err
		},
		func(k string) error {
			_, err := m.zset(k).Scan(0, structures.ScanOptions{}, func([]byte, float64) {})
			return err
		},
	}
}

// Every method of every type refuses a key of any other type, and writes
// nothing.
func TestWrongType(t *testing.T) {
	for _, typ := range allTypes {
		for _, key := range allTypes {
			if key == typ {
				continue
			}
			for i := range callsOf(oneOfEach(t), typ) {
				m := oneOfEach(t)
				before := m.writes
				err := callsOf(m, typ)[i](key)
				if err != structures.ErrWrongType {
					t.Errorf("method %d of %s on a %s: %v", i, typ, key, err)
				}
				equal(t, "records written by "+typ+" to a "+key, m.writes, before)
			}
		}
	}
}

func callsOf(m *memory, typ string) []call {
	return map[string]func() []call{
		"string": m.stringCalls, "hash": m.hashCalls, "list": m.listCalls, "set": m.setCalls, "zset": m.zsetCalls,
	}[typ]()
}

// noChance stands in where nothing is drawn.
func noChance() uint64 { return 0 }
