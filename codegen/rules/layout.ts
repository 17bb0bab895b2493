// Rules about the whole file: the order of its parts, allowed keys, valid references and no unused
// components.

import { nearest } from '../../src/contract/input/did-you-mean.ts'
import { extensionKeys, grammar, type PartKind, partsOf, unknownKeys, walk } from '../grammar.ts'
import { carriers } from '../headers.ts'
import { isObject, locate, namePlace, refPath } from '../read.ts'
import type { Rule } from '../rule.ts'

const order = ['openapi', 'info', 'servers', 'security', 'tags', 'paths', 'components']

export const topLevelOrder: Rule = ({ document, report }) => {
  const keys = Object.keys(document)
  if (keys.join() !== order.join()) {
    report(
      [],
      'document',
      `the top level is ${keys.join(', ')}; readers expect one order, so write ${order.join(', ')}.`,
    )
  }
  if (!String(document.openapi).startsWith('3.1')) {
    report(
      ['openapi'],
      'document',
      `version ${document.openapi} is not 3.1, which types and validators need; write 3.1.0.`,
    )
  }
  if (!document.security?.some((scheme) => isObject(scheme) && Object.keys(scheme).length > 0)) {
    report(['security'], 'document', 'no security scheme, so every operation would be public; name one here.')
  }
}

export const keysAreKnown: Rule = ({ document, report }) => {
  for (const part of partsOf(document)) {
    for (const { name, at } of unknownKeys(part)) {
      const where = namePlace(document, part.at) || 'document'
      const home = extensionKeys.find((known) => known.name === name)
      const isExtension = /^x[-_]/i.test(name)
      const known = isExtension ? extensionKeys.map((key) => key.name) : [...(grammar.get(part.kind)?.keys() ?? [])]
      const guess = nearest(name, known)
      const advice = home
        ? `it belongs on ${withArticle(home.kind)}; move it there`
        : guess
          ? `did you mean ${guess}?`
          : `known here: ${known.join(', ')}`
      const why = isExtension ? 'a typo must not switch a check off' : 'tools ignore it silently'
      report(
        at,
        where,
        `the key ${name} means nothing on ${withArticle(part.kind)} and ${why}; ${advice}${guess && !home ? '' : '.'}`,
      )
    }
  }
}

function withArticle(noun: string): string {
  return `${/^[aeiou]/.test(noun) ? 'an' : 'a'} ${noun}`
}

export const referencesLead: Rule = ({ document, report }) => {
  for (const { node, at } of partsOf(document)) {
    if (node.$ref === undefined) continue
    if (typeof node.$ref === 'string' && node.$ref.startsWith('#/components/') && locate(document, node, at)) continue
    report(
      [...at, '$ref'],
      namePlace(document, at),
      `${node.$ref} leads nowhere in this file; define it or correct the name.`,
    )
  }
}

export const componentsAreUsed: Rule = ({ document, report }) => {
  const used = new Set<string>()
  const follow = (root: PartKind, node: unknown) => {
    for (const { node: part } of walk(root, node, [])) {
      if (typeof part.$ref !== 'string' || used.has(part.$ref)) continue
      used.add(part.$ref)
      const [, section = '', name = ''] = refPath(part.$ref)
      const kind = sections[section]
      if (kind) follow(kind, document.components?.[section]?.[name])
    }
  }
  follow('document', { paths: document.paths })
  for (const [section, parts] of Object.entries(document.components ?? {})) {
    if (section === 'securitySchemes' || section === 'x-headers' || !isObject(parts)) continue
    for (const name of Object.keys(parts).filter((each) => !used.has(`#/components/${section}/${each}`))) {
      report(
        ['components', section, name],
        name,
        'no operation uses it, so nothing keeps it correct; use it or delete it.',
      )
    }
  }
}

export const carriersAreKnown: Rule = ({ document, operations, report }) => {
  const words = Object.keys(carriers)
  const ids = operations.map(({ id }) => id)
  const statuses = new Set(operations.flatMap(({ operation }) => Object.keys(operation.responses ?? {})))
  for (const [name, header] of Object.entries(document.components?.['x-headers'] ?? {})) {
    const named: unknown = isObject(header) ? header['x-carried-by'] : undefined
    const list: unknown[] = Array.isArray(named) ? named : [named]
    for (const word of list) {
      if (typeof word === 'string' && ([...words, ...ids].includes(word) || statuses.has(word))) continue
      report(
        ['components', 'x-headers', name, 'x-carried-by'],
        name,
        `no response is called ${word}, so the header would be declared nowhere; write a status, an operationId or one of ${words.join(', ')}.`,
      )
    }
  }
}

const sections: Record<string, PartKind> = {
  schemas: 'schema',
  responses: 'response',
  parameters: 'parameter',
  examples: 'example',
  requestBodies: 'requestBody',
  headers: 'header',
}

export const tagsInOrder: Rule = ({ document, operations, report }) => {
  const tags = (document.tags ?? []).map((tag) => tag.name)
  for (const [index, tag] of (document.tags ?? []).entries()) {
    if (!tag.description) report(['tags', index], tag.name, 'a tag without a description; describe it in a sentence.')
    if (!operations.some(({ operation }) => operation.tags?.[0] === tag.name)) {
      report(
        ['tags', index],
        tag.name,
        'a tag without operations, yet tag = folder = test file; add one or delete the tag.',
      )
    }
  }
  let reached = 0
  for (const { id, operation, at, path } of operations) {
    const position = tags.indexOf(operation.tags?.[0] ?? '')
    if (position >= 0 && position < reached) {
      report(
        at,
        id,
        `${path} comes after paths of ${tags[reached]}; paths follow the order of tags, so move it to ${tags[position]}.`,
      )
    }
    reached = Math.max(reached, position)
  }
}

export const parentsFirst: Rule = ({ document, report }) => {
  const paths = Object.keys(document.paths ?? {})
  for (const [index, path] of paths.entries()) {
    if (!path.startsWith('/')) report(['paths', path], path, 'a path starts with a slash; add it.')
    const parent = path.slice(0, path.lastIndexOf('/'))
    if (paths.indexOf(parent) > index) {
      report(
        ['paths', path],
        path,
        `comes before ${parent}; the order is collection, item, mass, verbs, so move it below.`,
      )
    }
  }
}

export const openForAnEntity: Rule = ({ document, report }) => {
  for (const [name, schema] of Object.entries(document.components?.schemas ?? {})) {
    if (!isObject(schema) || schema.additionalProperties !== true || schema['x-entity'] !== undefined) continue
    report(
      ['components', 'schemas', name],
      name,
      'it is open, but only custom attributes may be open; name their record type with x-entity, or close it.',
    )
  }
}
