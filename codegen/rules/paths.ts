// Rules about paths: they are in lower case, required parameters have an example, ids are
// bounded, and no URL matches two paths.

import { type ContractDocument, type Listed, namePlace, resolve, type SchemaObject } from '../read.ts'
import type { Rule } from '../rule.ts'

const maxId = Number.MAX_SAFE_INTEGER

export const pathIdsAreBounded: Rule = ({ document, operations, report }) => {
  for (const { id, parameters, path, at } of operations) {
    const declared = parameters.filter(({ part }) => part.in === 'path')
    const named = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name)
    for (const name of named.filter((each) => !declared.some(({ part }) => part.name === each))) {
      report(
        at,
        id,
        `{${name}} of the path is not declared and would reach the handler unchecked; add it to parameters.`,
      )
    }
    for (const { part, at: place } of parameters.filter(({ part }) => part.required)) {
      if (part.example !== undefined || part.examples !== undefined) continue
      report(
        place,
        namePlace(document, place),
        `no example of ${part.name}; programs that try a contract, such as dredd, fill URLs with examples, so add one.`,
      )
    }
    for (const { part, at: place, usedAt } of declared) {
      const schema = resolve(document, part.schema)
      if (!named.includes(part.name ?? '')) {
        report(
          usedAt,
          id,
          `a path parameter ${part.name} that ${path} does not have; use a query parameter or delete it.`,
        )
      }
      if (!schema || ![schema.type].flat().includes('integer') || schema.maximum === maxId) continue
      report(place, id, `ids beyond ${maxId} lose digits in JavaScript; give ${part.name} the maximum ${maxId}.`)
    }
  }
}

export const pathsAreLowerCase: Rule = ({ operations, report }) => {
  for (const { id, path, at } of operations) {
    if (!/[A-Z]/.test(path.replaceAll(/\{\w+\}/g, ''))) continue
    report(at.slice(0, 2), id, `${path} has capitals, which clients easily mistype in a URL; write it in lower case.`)
  }
}

/** Reports two paths if one URL can match both and a router prefers neither. */
export const pathsAreToldApart: Rule = ({ document, operations, report }) => {
  const paths = [...new Map(operations.map((each) => [each.path, each])).values()]
  for (const [index, one] of paths.entries()) {
    for (const other of paths.slice(0, index)) {
      if (!areAmbiguous(document, one, other)) continue
      report(
        one.at.slice(0, 2),
        one.id,
        `${one.path} and ${other.path} could be the same URL, and neither is the closer match; rename a fixed word.`,
      )
    }
  }
}

function areAmbiguous(document: ContractDocument, one: Listed, other: Listed): boolean {
  const [left, right] = [one, other].map(({ path }) => path.split('/'))
  if (!left || !right || left.length !== right.length) return false
  const pairs = left.map((segment, index) => [segment, right[index] ?? ''] as const)
  const isEither = pairs.every(
    ([a, b]) =>
      a === b || (isTemplate(a) && accepts(document, one, a, b)) || (isTemplate(b) && accepts(document, other, b, a)),
  )
  // A router prefers the path with a fixed word over the path with a parameter in that position.
  // Neither path wins if each has a fixed word where the other has a parameter.
  const isCloser = (a: number, b: number): boolean =>
    pairs.some((pair) => !isTemplate(pair[a] ?? '') && isTemplate(pair[b] ?? ''))
  return isEither && isCloser(0, 1) === isCloser(1, 0)
}

const isTemplate = (segment: string): boolean => segment.startsWith('{')

/**
 * Returns whether the path parameter `template` accepts `word`. A word that is itself a parameter
 * is always accepted.
 */
function accepts(document: ContractDocument, { parameters }: Listed, template: string, word: string): boolean {
  if (isTemplate(word)) return true
  const name = template.slice(1, -1)
  const schema: SchemaObject = resolve(document, parameters.find(({ part }) => part.name === name)?.part.schema) ?? {}
  if ([schema.type].flat().includes('integer')) return /^\d+$/.test(word)
  return !Array.isArray(schema.enum) || schema.enum.includes(word)
}
