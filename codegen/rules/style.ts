// Rules about the text of openapi.yaml: narrow lines, one thing per line, one order of keys.

import { commonErrors, commonErrorsOf } from '../common-errors.ts'
import { grammar, partsOf } from '../grammar.ts'
import { isObject, listOperations, namePlace } from '../read.ts'
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

export const descriptionsStandAlone: Rule = ({ contract: { source, flowParts }, report }) => {
  for (const { node, at } of partsOf(source)) {
    if (node.description === undefined || !flowParts.has(node)) continue
    report(at, namePlace(source, at), 'a part with a description is written in braces; write one key per line.')
  }
}

/**
 * Reports a list or map of objects that is written on one line. Each entry needs its own line,
 * because people scan entries from top to bottom. `content` may be on one line, because it has only
 * one entry.
 */
export const partsStandAlone: Rule = ({ contract: { source, flowParts }, report }) => {
  for (const { kind, node, at } of partsOf(source)) {
    for (const [name, value] of Object.entries(node)) {
      const key = grammar.get(kind)?.get(name)
      const isMany = key?.holds === 'list' || (key?.holds === 'names' && name !== 'content')
      if (!isMany || (!isObject(value) && !Array.isArray(value)) || !flowParts.has(value)) continue
      report([...at, name], namePlace(source, at), `${name} are in one line; write one per line.`)
    }
  }
}

export const keysAreInOrder: Rule = ({ contract: { source }, report }) => {
  for (const { kind, node, at } of partsOf(source)) {
    const order = [...(grammar.get(kind)?.keys() ?? [])]
    const names = Object.keys(node).filter((name) => order.includes(name))
    const index = names.findIndex((name, place) => order.indexOf(name) < order.indexOf(names[place - 1] ?? ''))
    if (index < 1) continue
    const [before, name] = names.slice(index - 1)
    report(
      [...at, String(name)],
      namePlace(source, at),
      `${name} comes after ${before}; one order of keys makes parts comparable, so move it up.`,
    )
  }
}

/**
 * Reports an error response that is written by hand although `default` already includes this error.
 * The copies would drift apart.
 */
export const commonErrorsAreShared: Rule = ({ contract: { source }, report }) => {
  for (const { id, path, method, operation, at } of listOperations(source)) {
    const statuses = Object.keys(operation.responses ?? {})
    const common = Object.keys(commonErrorsOf(source, path, method, operation))
    const listed = common.filter((status) => statuses.includes(status))
    const place = [...at, 'responses']
    if (!statuses.includes('default')) {
      if (listed.length < common.length) continue
      report(place, id, `every common error is listed; write default: ${commonErrors} instead.`)
    } else if (listed.length > 0) {
      report(place, id, `default stands for ${listed.join(', ')} here; delete what is listed twice.`)
    }
  }
}

/**
 * Reports a rule line (`# ── leads ───`) that is out of order. Lines of tags follow the order of
 * `tags`; lines of parts that several tags use come before them. Lines among the paths and lines
 * among the schemas have different indentation, so each group is checked separately.
 */
export const ruleLinesInOrder: Rule = ({ contract, document, report }) => {
  const tags = (document.tags ?? []).map(({ name }) => name.toLowerCase())
  const reached = new Map<string, string>()
  for (const [index, line] of contract.text.split('\n').entries()) {
    const [, indent = '', name = ''] = /^( +)# ── (.+?) ─+$/.exec(line) ?? []
    const before = reached.get(indent)
    if (name !== '' && before !== undefined && tags.indexOf(name) <= tags.indexOf(before)) {
      const order = tags.includes(name) ? 'the parts follow the order of tags' : 'parts of several tags come first'
      report(index + 1, 'document', `${name} comes after ${before}; ${order}, so move it up.`)
    } else if (tags.includes(name)) reached.set(indent, name)
  }
}

const minSharedParameters = 6

/**
 * Reports a long list of parameters that an operation repeats from an earlier operation. A YAML
 * alias can share the list.
 */
export const longListsAreAliased: Rule = ({ contract: { source }, report }) => {
  const known = new Map<string, { id: string; list: unknown }>()
  for (const { id, operation, at } of listOperations(source)) {
    const list = operation.parameters
    if (!Array.isArray(list) || list.length < minSharedParameters) continue
    const first = known.get(JSON.stringify(list))
    if (!first) known.set(JSON.stringify(list), { id, list })
    else if (first.list !== list) {
      report([...at, 'parameters'], id, `it repeats the parameters of ${first.id}; anchor that list and use an alias.`)
    }
  }
}
