// The house rules of openapi.yaml: one small function each, listed at the end. A rule looks at the contract and reports
// what is wrong, why it matters and what to do; `lint` adds the line. What OpenAPI itself demands, @redocly/cli checks.
import { eventBases } from './events.ts'
import { lintExamples } from './examples.ts'
import { extensionKeys, grammar, partsOf, unknownKeys, walk } from './grammar.ts'
import { nearest } from './nearest.ts'
import {
  type Body,
  type Contract,
  contractFile,
  type Document,
  dataOf,
  isObject,
  type Listed,
  listOperations,
  locate,
  type Path,
  placeOf,
  refPath,
  resolve,
  type Schema,
  schemaOf,
} from './read.ts'

export interface Knowledge {
  permissionKeys: readonly string[]
}

export interface Look extends Knowledge {
  document: Document
  operations: Listed[]
  lineCount: number
  report: (at: Path, where: string, sentence: string) => void
}

type Rule = (look: Look) => void

export const maxLines = 8000
const maxId = Number.MAX_SAFE_INTEGER
const order = ['openapi', 'info', 'servers', 'security', 'tags', 'paths', 'components']
const writing = new Set(['post', 'put', 'delete'])

/** Every finding as `openapi.yaml:<line> <where>: <what, why, what to do>`, from top to bottom; none is good. */
export function lint(contract: Contract, knowledge: Knowledge): string[] {
  if (contract.problems.length > 0) return contract.problems
  const found = new Map<string, number>()
  const look: Look = {
    ...knowledge,
    document: contract.document,
    operations: listOperations(contract.document),
    lineCount: contract.text.trimEnd().split('\n').length,
    report: (at, where, sentence) => {
      const line = contract.lineOf(at)
      found.set(`${contractFile}:${line} ${where}: ${sentence}`, line)
    },
  }
  for (const rule of rules) rule(look)
  return [...found].sort(([, a], [, b]) => a - b).map(([finding]) => finding)
}

const topLevelOrder: Rule = ({ document, report }) => {
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
      `version ${document.openapi} is not 3.1, which types and validators rely on; write 3.1.0.`,
    )
  }
  if (!document.security?.some((scheme) => isObject(scheme) && Object.keys(scheme).length > 0)) {
    report(['security'], 'document', 'no security scheme, so every operation would be public; name one here.')
  }
}

const withinBudget: Rule = ({ lineCount, report }) => {
  if (lineCount <= maxLines) return
  report(
    [],
    'document',
    `${lineCount} lines are more than the ${maxLines} a person can keep in view; share more schemas.`,
  )
}

const keysAreKnown: Rule = ({ document, report }) => {
  for (const part of partsOf(document)) {
    for (const { name, at } of unknownKeys(part)) {
      const where = placeOf(document, part.at) || 'document'
      const home = extensionKeys.find((known) => known.name === name)
      const isExtension = /^x[-_]/i.test(name)
      const known = isExtension ? extensionKeys.map((key) => key.name) : [...(grammar.get(part.kind)?.keys() ?? [])]
      const guess = nearest(name, known)
      const advice = home
        ? `it belongs on ${/^[aeiou]/.test(home.kind) ? 'an' : 'a'} ${home.kind}; move it there`
        : guess
          ? `did you mean ${guess}?`
          : `known here: ${known.join(', ')}`
      const why = isExtension ? 'a typo must not switch a check off' : 'tools ignore it silently'
      report(
        at,
        where,
        `the key ${name} means nothing on a ${part.kind} and ${why}; ${advice}${guess && !home ? '' : '.'}`,
      )
    }
  }
}

const referencesLead: Rule = ({ document, report }) => {
  for (const { node, at } of partsOf(document)) {
    if (node.$ref === undefined) continue
    if (typeof node.$ref === 'string' && node.$ref.startsWith('#/components/') && locate(document, node, at)) continue
    report(
      [...at, '$ref'],
      placeOf(document, at),
      `${node.$ref} leads nowhere in this file; define it or correct the name.`,
    )
  }
}

const componentsAreUsed: Rule = ({ document, report }) => {
  const used = new Set<string>()
  const follow = (root: Parameters<typeof walk>[0], node: unknown) => {
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
    if (section === 'securitySchemes' || !isObject(parts)) continue
    for (const name of Object.keys(parts).filter((each) => !used.has(`#/components/${section}/${each}`))) {
      report(
        ['components', section, name],
        name,
        'no operation reaches it, so nothing keeps it true; use it or delete it.',
      )
    }
  }
}

const sections: Record<string, Parameters<typeof walk>[0]> = {
  schemas: 'schema',
  responses: 'response',
  parameters: 'parameter',
  examples: 'example',
  requestBodies: 'requestBody',
  headers: 'header',
}

const tagsInOrder: Rule = ({ document, operations, report }) => {
  const tags = (document.tags ?? []).map((tag) => tag.name)
  for (const [index, tag] of (document.tags ?? []).entries()) {
    if (!tag.description)
      report(['tags', index], tag.name, 'a tag without description; say in a sentence what it is about.')
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
        `${path} stands among ${tags[reached]}; paths follow the order of tags, so move it to ${tags[position]}.`,
      )
    }
    reached = Math.max(reached, position)
  }
}

const parentsFirst: Rule = ({ document, report }) => {
  const paths = Object.keys(document.paths ?? {})
  for (const [index, path] of paths.entries()) {
    if (!path.startsWith('/')) report(['paths', path], path, 'a path starts with a slash; add it.')
    const parent = path.slice(0, path.lastIndexOf('/'))
    if (paths.indexOf(parent) > index) {
      report(
        ['paths', path],
        path,
        `stands before ${parent}; people read collection, item, mass, verbs, so move it below.`,
      )
    }
  }
}

const operationsAreNamed: Rule = ({ document, operations, report }) => {
  const tags = (document.tags ?? []).map((tag) => tag.name)
  const seen = new Map<string, string>()
  for (const { id, operation, at, method, path } of operations) {
    const { operationId, summary, description } = operation
    if (typeof operationId !== 'string' || !/^[a-z][a-zA-Z0-9]*$/.test(operationId)) {
      report(at, id, 'no operationId in camelCase, which names the handler; add one such as listLeads.')
    } else if (seen.has(operationId)) {
      report(at, id, `the operationId is also that of ${seen.get(operationId)}; handlers need one each, so rename one.`)
    }
    seen.set(id, `${method.toUpperCase()} ${path}`)
    if (operation.tags?.length !== 1) report(at, id, 'an operation has exactly one tag, its folder; write one.')
    else if (!tags.includes(operation.tags[0] ?? '')) {
      report(
        [...at, 'tags'],
        id,
        `the tag ${operation.tags[0]} is not listed in tags;${meant(operation.tags[0], tags)}`,
      )
    }
    if (!summary) report(at, id, 'no summary, the line people read in the docs; write one.')
    if (!description) report(at, id, 'no description; tell a newcomer what it does and what it does not.')
  }
}

const permissionsAreSettled: Rule = ({ operations, permissionKeys, report }) => {
  for (const { id, operation, at, isPublic } of operations) {
    const { 'x-permission': permission, 'x-any-user': anyUser, security } = operation
    const answers = [permission !== undefined, anyUser !== undefined, isPublic].filter(Boolean).length
    if (answers !== 1) {
      report(
        at,
        id,
        `${answers === 0 ? 'nothing says' : 'more than one line says'} who may call it; write exactly one of ` +
          'x-permission: <key>, x-any-user: <sentence why>, security: [].',
      )
    }
    if (security !== undefined && !isPublic) {
      report(
        [...at, 'security'],
        id,
        'its own security hides the common one; leave it out, or write [] when it is public.',
      )
    }
    if (permission !== undefined && !permissionKeys.includes(permission)) {
      report([...at, 'x-permission'], id, `no role can hold the key ${permission};${meant(permission, permissionKeys)}`)
    }
    if (anyUser !== undefined && !isSentence(anyUser)) {
      report([...at, 'x-any-user'], id, 'x-any-user holds the sentence why being signed in is enough; write it.')
    }
  }
}

const abilities = 'leads persons organizations quotes products activities emails settings automation data-transfer'
const areas = [...abilities.split(' '), 'events', 'reports', 'files', 'account']

const abilitiesAreSettled: Rule = ({ operations, report }) => {
  for (const { id, operation, at, isPublic, method } of operations) {
    const ability = operation['x-ability']
    if (isPublic && ability === undefined) continue
    if (isPublic) report([...at, 'x-ability'], id, 'a public operation looks at no token; delete x-ability.')
    else if (ability === undefined) {
      report(at, id, 'no x-ability, so narrow tokens could not be kept out; write <area>:read or <area>:write.')
    } else {
      const [area = '', action] = String(ability).split(':')
      const expected = writing.has(method) ? 'write' : 'read'
      if (!areas.includes(area)) {
        report([...at, 'x-ability'], id, `tokens know no area ${area};${meant(area, areas)}`)
      } else if (action !== expected) {
        report(
          [...at, 'x-ability'],
          id,
          `${method.toUpperCase()} is covered by ${area}:${expected}, not ${ability}; write that.`,
        )
      }
    }
  }
}

const eventsAreSettled: Rule = ({ operations, report }) => {
  for (const { id, operation, at, method } of operations) {
    const { 'x-events': events, 'x-no-event': none } = operation
    const writes = writing.has(method)
    if (!writes && (events !== undefined || none !== undefined)) {
      report(at, id, 'reading changes nothing and tells nobody; delete x-events or x-no-event.')
    }
    if (writes && (events === undefined) === (none === undefined)) {
      report(
        at,
        id,
        'a writing operation says which events it emits or why none: exactly one of x-events and x-no-event.',
      )
    }
    if (none !== undefined && !isSentence(none)) {
      report([...at, 'x-no-event'], id, 'x-no-event holds the sentence why there is none; write it.')
    }
    if (events !== undefined && (!Array.isArray(events) || events.length === 0)) {
      report([...at, 'x-events'], id, 'x-events is a list of base names, the own one first; write at least one.')
    }
    for (const [index, event] of (Array.isArray(events) ? events : []).entries()) {
      if (eventBases.includes(event)) continue
      report([...at, 'x-events', index], id, `nobody emits an event ${event};${meant(String(event), eventBases)}`)
    }
  }
}

const servedByDocs: Rule = ({ operations, report }) => {
  for (const { id, operation, at } of operations) {
    const by = operation['x-served-by']
    if (by === undefined || by === 'docs') continue
    report([...at, 'x-served-by'], id, `${by} serves nothing; write docs, or delete the line when a handler answers.`)
  }
}

const bodiesAreDeclared: Rule = ({ document, operations, report }) => {
  for (const { id, operation, at } of operations) {
    const found = bodyOf(document, operation.requestBody, at)
    if (!found) continue
    const forms = Object.entries(found.part.content ?? {})
    if (typeof found.part.required !== 'boolean') {
      report(found.at, id, 'a body without `required` may be left out; write required: true or false.')
    }
    if (forms.length === 0)
      report(found.at, id, 'a body without content cannot be checked; name its media type and schema.')
    const schemas = new Set(forms.map(([, form]) => JSON.stringify(form?.schema)))
    const shared = forms.every(([, form]) => form?.schema?.$ref !== undefined)
    if (forms.length > 1 && (schemas.size > 1 || !shared)) {
      report(
        found.at,
        id,
        'its media types have several schemas but only one is checked; let all refer to the same one.',
      )
    }
  }
}

const bodiesAreClosed: Rule = ({ document, operations, report }) => {
  for (const { operation, at } of operations) {
    const found = bodyOf(document, operation.requestBody, at)
    for (const { schema, at: place } of reachable(document, found)) {
      const isForm = schema.properties !== undefined
      if (!isForm && !typesOf(schema).includes('object')) continue
      if (isForm ? schema.additionalProperties === false : schema.additionalProperties !== undefined) continue
      report(
        place,
        placeOf(document, place),
        isForm
          ? 'clients send it, and unknown fields must be refused with a hint; add additionalProperties: false.'
          : 'clients send it, and it does not say what it may hold; write additionalProperties (a schema, true or false).',
      )
    }
  }
}

const repliesArePlain: Rule = ({ document, operations, report }) => {
  for (const { operation, at } of operations) {
    for (const [status, response] of Object.entries(operation.responses ?? {})) {
      const found = bodyOf(document, response, [...at, 'responses', status], [])
      for (const { schema, at: place } of reachable(document, found)) {
        if (schema.allOf === undefined) continue
        report(
          [...place, 'allOf'],
          placeOf(document, place),
          'allOf in a reply cannot be closed; write its properties out.',
        )
      }
    }
  }
}

const bodiesAreNotReplies: Rule = ({ document, operations, report }) => {
  const replies = new Map<string, string>()
  for (const { id, operation } of operations) {
    for (const response of Object.values(operation.responses ?? {})) {
      const reply = resolve(document, response)
      for (const schema of [schemaOf(reply), dataOf(document, reply), rawData(document, reply)]) {
        if (schema?.$ref !== undefined) replies.set(schema.$ref, id)
      }
    }
  }
  for (const { id, operation, at } of operations) {
    const $ref = schemaOf(resolve(document, operation.requestBody))?.$ref
    const other = $ref === undefined ? undefined : replies.get($ref)
    if (other === undefined) continue
    report(
      [...at, 'requestBody'],
      id,
      `its body ${refPath(String($ref)).at(-1)} is what ${other} replies; the two drift apart, so give the body its own schema.`,
    )
  }
}

const pathIdsAreBounded: Rule = ({ document, operations, report }) => {
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
    for (const { part, at: place } of declared) {
      const schema = resolve(document, part.schema)
      if (!named.includes(part.name ?? '')) report(place, id, `the path has no {${part.name}}; delete the parameter.`)
      if (!schema || !typesOf(schema).includes('integer') || schema.maximum === maxId) continue
      report(place, id, `ids beyond ${maxId} lose digits in JavaScript; give ${part.name} the maximum ${maxId}.`)
    }
  }
}

const statusesAreComplete: Rule = ({ document, operations, report }) => {
  for (const { id, operation, at, path, isPublic } of operations) {
    const codes = Object.keys(operation.responses ?? {})
    const successes = codes.filter((code) => /^2/.test(code))
    if (successes.length !== 1) {
      report(
        at,
        id,
        `${successes.length} statuses of success; the status comes from the contract, so list exactly one 2xx.`,
      )
    }
    const needed = new Map<string, string>()
    if (!isPublic) needed.set('401', 'it wants a signed-in caller')
    if (operation['x-permission'] !== undefined) needed.set('403', 'it wants a permission')
    if (path.includes('{')) needed.set('404', 'its path names a record')
    if (resolve(document, operation.requestBody)) {
      for (const code of ['400', '413', '415', '422']) needed.set(code, 'it takes a body')
    }
    const missing = [...needed].filter(([code]) => !codes.includes(code))
    for (const why of new Set(missing.map(([, reason]) => reason))) {
      const list = missing.filter(([, reason]) => reason === why).map(([code]) => code)
      report(
        [...at, 'responses'],
        id,
        `${why} but does not list ${list.join(', ')}; clients must know, so add a response.`,
      )
    }
  }
}

const schemasAreDescribed: Rule = ({ document, report }) => {
  for (const [name, schema] of Object.entries(document.components?.schemas ?? {})) {
    const at = ['components', 'schemas', name]
    if (!isObject(schema)) report(at, name, 'is not a schema; write one.')
    else {
      if (!schema.description) report(at, name, 'no description; a newcomer meets it in the docs, so say what it is.')
      if (schema.example !== undefined || (Array.isArray(schema.examples) && schema.examples.length > 0)) continue
      report(at, name, 'no example; people copy from the docs, so add one that is valid.')
    }
  }
}

/** In the order they are explained to a newcomer; add yours here. */
const rules: readonly Rule[] = [
  topLevelOrder,
  withinBudget,
  keysAreKnown,
  referencesLead,
  componentsAreUsed,
  tagsInOrder,
  parentsFirst,
  operationsAreNamed,
  permissionsAreSettled,
  abilitiesAreSettled,
  eventsAreSettled,
  servedByDocs,
  bodiesAreDeclared,
  bodiesAreClosed,
  repliesArePlain,
  bodiesAreNotReplies,
  pathIdsAreBounded,
  statusesAreComplete,
  schemasAreDescribed,
  lintExamples,
]

function meant(word: string | undefined, known: readonly string[]): string {
  const guess = nearest(word ?? '', known)
  return guess
    ? ` did you mean ${guess}?`
    : ` known are ${known.slice(0, 8).join(', ')}${known.length > 8 ? ' …' : ''}.`
}

function isSentence(value: unknown): boolean {
  return typeof value === 'string' && value.trim().includes(' ')
}

export function typesOf(schema: Schema): string[] {
  return schema.type === undefined ? [] : [schema.type].flat()
}

function bodyOf(document: Document, body: Body | undefined, at: Path, below: Path = ['requestBody']) {
  return locate(document, body, [...at, ...below])
}

function rawData(document: Document, reply: Body | undefined): Schema | undefined {
  const data = resolve(document, schemaOf(reply))?.properties?.data
  return data?.items ?? data
}

/** Every schema a body can hold, at any depth, each once. */
function* reachable(
  document: Document,
  body: { part: Body; at: Path } | undefined,
): Generator<{ schema: Schema; at: Path }> {
  if (!body) return
  const seen = new Set<unknown>()
  const queue: { node: unknown; at: Path }[] = Object.entries(body.part.content ?? {}).map(([type, form]) => ({
    node: form?.schema,
    at: [...body.at, 'content', type, 'schema'],
  }))
  for (let next = queue.shift(); next; next = queue.shift()) {
    for (const { node, at } of walk('schema', next.node, next.at)) {
      if (seen.has(node)) continue
      seen.add(node)
      if (typeof node.$ref !== 'string') yield { schema: node, at }
      else {
        const found = locate(document, node, at)
        if (found) queue.push({ node: found.part, at: found.at })
      }
    }
  }
}
