// chart-render - what Helm makes of a chart, by Go's own templates and the functions of sprig.
//
//	chart-render CHART VALUES.json NAMESPACE
//
// Prints all templates with the chart's values, over which those of VALUES.json go. Helm itself is
// in no Debian package. Of what it adds to text/template and sprig, only what our chart uses is here:
// .Values, .Chart and .Release. A value that is missing is an error.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

func read(path string) map[string]interface{} {
	text, err := os.ReadFile(path)
	check(err)
	values := map[string]interface{}{}
	check(yaml.UnmarshalStrict(text, &values))
	return values
}

func merge(to, from map[string]interface{}) {
	for key, value := range from {
		inner, isMap := value.(map[string]interface{})
		old, wasMap := to[key].(map[string]interface{})
		if isMap && wasMap {
			merge(old, inner)
		} else {
			to[key] = value
		}
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "chart-render:", err)
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) != 4 {
		check(fmt.Errorf("usage: chart-render CHART VALUES.json NAMESPACE"))
	}
	values := read(filepath.Join(os.Args[1], "values.yaml"))
	merge(values, read(os.Args[2]))
	about := map[string]interface{}{}
	for key, value := range read(filepath.Join(os.Args[1], "Chart.yaml")) {
		about[strings.ToUpper(key[:1])+key[1:]] = value
	}
	data := map[string]interface{}{"Values": values, "Chart": about,
		"Release": map[string]interface{}{"Name": "weft", "Namespace": os.Args[3]}}
	paths, err := filepath.Glob(filepath.Join(os.Args[1], "templates", "*.yaml"))
	check(err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		check(err)
		t, err := template.New(path).Funcs(sprig.TxtFuncMap()).Option("missingkey=error").Parse(string(text))
		check(err)
		fmt.Println("---")
		check(t.Execute(os.Stdout, data))
	}
}
