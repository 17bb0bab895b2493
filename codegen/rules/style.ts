// Rules about openapi.yaml as a text: narrow lines, one thing a line, the same order of keys everywhere.

import { grammar, partsOf } from '../grammar.ts'
import { isObject, placeOf } from '../read.ts'
import type { Rule } from '../rule.ts'

export const maxColumns = 120

export const linesAreNarrow: Rule = ({ contract, report }) => {
  for (const [index, line] of contract.text.split('\n').entries()) {
    if (line.length <= maxColumns) continue
    report(
      index + 1,
      'document',
      `the line has ${line.length} columns, and a diff shows lines; break it to at most ${maxColumns}, prose with >-.`,
    )
  }
}

export const descriptionsStandAlone: Rule = ({ document, contract, report }) => {
  for (const { node, at } of partsOf(document)) {
    if (node.description === undefined || !contract.flowParts.has(node)) continue
    report(at, placeOf(document, at), 'a description stands among braces; write one key a line.')
  }
}

/** Lists and maps of parts that people scan from top to bottom. `content` has one entry and stays in a line. */
export const partsStandAlone: Rule = ({ document, contract, report }) => {
  for (const { kind, node, at } of partsOf(document)) {
    for (const [name, value] of Object.entries(node)) {
      const key = grammar.get(kind)?.get(name)
      const isMany = key?.holds === 'list' || (key?.holds === 'names' && name !== 'content')
      if (!isMany || (!isObject(value) && !Array.isArray(value)) || !contract.flowParts.has(value)) continue
      report([...at, name], placeOf(document, at), `${name} stand in one line; write one a line.`)
    }
  }
}

export const keysAreInOrder: Rule = ({ document, report }) => {
  for (const { kind, node, at } of partsOf(document)) {
    const order = [...(grammar.get(kind)?.keys() ?? [])]
    const names = Object.keys(node).filter((name) => order.includes(name))
    const index = names.findIndex((name, place) => order.indexOf(name) < order.indexOf(names[place - 1] ?? ''))
    if (index < 1) continue
    const [before, name] = names.slice(index - 1)
    report(
      [...at, String(name)],
      placeOf(document, at),
      `${name} stands after ${before}; one order of keys makes parts comparable, so move it up.`,
    )
  }
}
