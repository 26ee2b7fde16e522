package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stavedb/stave/cluster/etcd"
	"github.com/stavedb/stave/internal/group"
	urfave "github.com/urfave/cli/v2"
)

// The record of a group whose etcd has lost it, made anew of what the members say.

// recoverWithin is how long etcd may take.
const recoverWithin = 10 * time.Second

func recoverCommand() *urfave.Command {
	return &urfave.Command{
		Name: "recover", Usage: "Makes the record of a group anew, when etcd has lost it",
		UsageText: "staved recover --etcd URLS [--lost ID] < INFO",
		Description: `Reads what INFO replication says of each member, one after the other:

   for h in 10.0.0.1 10.0.0.2 10.0.0.3; do redis-cli -h $h info replication; done |
       staved recover --etcd http://10.0.1.1:2379

All members are to be started again first, with an etcd that has no record. Members that
were in sync last are all needed: any of them may know that others were in sync later.`,
		Flags: append(slices.DeleteFunc(serveFlags(), func(f urfave.Flag) bool {
			return !slices.Contains([]string{"cluster", "group", "etcd", "etcd-cacert", "etcd-cert", "etcd-key"}, f.Names()[0])
		}), &urfave.StringSliceFlag{Name: "lost", Usage: "go on without the member `ID`, which will not come back: what was acknowledged after it had gone on alone is lost"}),
		Action: func(c *urfave.Context) error {
			var wrong mistakes
			p := part{key: recordKey(c, &wrong)}
			p.readEtcd(c, &wrong)
			wrong.add(len(p.endpoints) == 0, "where is etcd? --etcd URL,... names it; that of --peers is at its --etcd-client, http://127.0.0.1:2379")
			wrong.add(c.NArg() > 0, "staved recover takes no arguments: it reads what INFO replication says of the members")
			if err := errors.Join(wrong...); err != nil {
				return err
			}
			witnesses, err := readWitnesses(c.App.Reader, c.String("group"))
			if err != nil {
				return err
			}
			r, err := group.Recover(witnesses, c.StringSlice("lost")...)
			if err != nil {
				return fmt.Errorf("the record cannot be recovered: %w\nstart the members that are missing, or name those that will not come back by --lost", err)
			}
			if err := p.makeRecord(c.Context, r); err != nil {
				return err
			}
			text, err := json.Marshal(r)
			if err == nil {
				_, err = fmt.Fprintf(c.App.Writer, "%s %s\n", p.key, text)
			}
			return err
		},
	}
}

// makeRecord makes the record, if there is none.
func (p *part) makeRecord(ctx context.Context, r group.Record) error {
	client, err := p.connect()
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, recoverWithin)
	defer cancel()
	service := etcd.New(client, p.key)
	v, err := service.Read(ctx)
	switch {
	case err != nil:
		return err
	case v.Version > 0:
		return fmt.Errorf("etcd has a record of the group, of term %d: if it is an old one, from a backup of etcd, stop all members, etcdctl del %s, and start them again", v.Term, p.key)
	}
	if v, err = service.Swap(ctx, group.Swap{Record: r}); err != nil {
		return fmt.Errorf("it is not known whether the record was made: %w", err)
	}
	if v.Term != r.Term || v.Version != 1 {
		return fmt.Errorf("somebody else has made a record of the group at the same time, of term %d", v.Term)
	}
	return nil
}

// readWitnesses reads what INFO says of members, one after the other.
func readWitnesses(r io.Reader, groupName string) (list []group.Witness, err error) {
	var at *group.Witness
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(strings.TrimRight(lines.Text(), "\r"), ":")
		if !strings.HasPrefix(name, "group_") {
			continue
		}
		if name == "group_name" {
			if value != groupName {
				return nil, fmt.Errorf("the input has a member of the group %s, and --group is %s", value, groupName)
			}
			list = append(list, group.Witness{})
			at = &list[len(list)-1]
			continue
		}
		if at == nil {
			return nil, fmt.Errorf("the input has %s before any group_name: it is not what INFO replication says", name)
		}
		switch name {
		case "group_id":
			at.ID = value
		case "group_incarnation":
			at.Incarnation, err = strconv.ParseUint(value, 10, 64)
		case "group_term":
			if value != "0" {
				err = errors.New("has found a record since it was started: restart it when etcd has none any more")
			}
		case "group_noted":
			at.Noted, err = group.ParseNoted([]byte(value))
		}
		if err != nil {
			return nil, fmt.Errorf("the member %s: %w", at.ID, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return list, judgeWitnesses(list)
}

func judgeWitnesses(list []group.Witness) error {
	if len(list) == 0 {
		return errors.New("the input has no member of a group: pass on what INFO replication says of each")
	}
	ids := map[string]bool{}
	for _, w := range list {
		if w.ID == "" || w.Incarnation == 0 || w.Noted.Group == "" {
			return fmt.Errorf("the input lacks fields of the member %q: all of INFO replication is needed", w.ID)
		}
		if ids[w.ID] {
			return fmt.Errorf("the input has the member %s twice", w.ID)
		}
		ids[w.ID] = true
	}
	return nil
}
