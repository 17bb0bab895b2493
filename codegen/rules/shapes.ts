// Rules about operations, request bodies, responses and schemas.
import { partsOf, walk } from '../grammar.ts'
import {
  type BodyOrResponse,
  type ContractDocument,
  dataOf,
  isDeferred,
  isObject,
  type MediaType,
  namePlace,
  refPath,
  resolve,
  type SchemaObject,
  schemaOf,
  successOf,
  widestOf,
} from '../read.ts'
import type { Rule } from '../rule.ts'
import { suggest } from './access.ts'
import { bodiesIn, reachable, repliesIn, requestBodyAt, schemasIn, schemaTypes } from './reach.ts'

export const operationsAreNamed: Rule = ({ document, operations, report }) => {
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
        `the tag ${operation.tags[0]} is not listed in tags;${suggest(operation.tags[0], tags)}`,
      )
    }
    if (!summary) report(at, id, 'no summary, the line people read in the docs; write one.')
    if (!description) report(at, id, 'no description; tell a newcomer what the operation does.')
  }
}

export const bodiesAreDeclared: Rule = ({ document, operations, report }) => {
  for (const { id, operation, at } of operations) {
    const found = requestBodyAt(document, operation.requestBody, at)
    if (!found) continue
    const forms = Object.entries(found.part.content ?? {})
    if (typeof found.part.required !== 'boolean') {
      report(found.at, id, 'a body without `required` is optional by accident; write required: true or false.')
    }
    if (forms.length === 0)
      report(found.at, id, 'a body without content cannot be checked; name its media type and schema.')
    // Lines are checked one by one, each like the body of its single operation.
    if (forms.length < 2 || forms.some(([type]) => type === 'application/x-ndjson')) continue
    const widest = resolve(document, widestOf(found.part))?.properties ?? {}
    const isKnown = ({ schema }: MediaType): boolean =>
      schema?.$ref !== undefined &&
      Object.keys(resolve(document, schema)?.properties ?? {}).every((name) => Object.hasOwn(widest, name))
    if (!forms.every(([, form]) => isKnown(form))) {
      report(
        found.at,
        id,
        'its media types have several schemas but only one is checked; use one schema for all, or give the form a schema with more keys.',
      )
    }
  }
}

export const bodiesAreClosed: Rule = (context) => {
  const { document, report } = context
  for (const { schema, at: place } of reachable(document, schemasIn(bodiesIn(context)))) {
    const isForm = schema.properties !== undefined
    if (!isForm && !schemaTypes(schema).includes('object')) continue
    // A body that a third-party program sends may have further keys, if `additionalProperties`
    // has a description.
    const isTolerant = isObject(schema.additionalProperties) && schema.additionalProperties.description !== undefined
    if (isForm ? schema.additionalProperties === false || isTolerant : schema.additionalProperties !== undefined)
      continue
    report(
      place,
      namePlace(document, place),
      isForm
        ? 'clients send it, and unknown fields must be refused with a hint; add additionalProperties: false.'
        : 'clients send it, and its keys are undefined; write additionalProperties (a schema, true or false).',
    )
  }
}

export const filesTravelInForms: Rule = (context) => {
  const { document, report } = context
  const withoutForms = bodiesIn(context).flatMap(({ part, at }) => {
    const { 'multipart/form-data': form, ...content } = part.content ?? {}
    return form !== undefined && content['application/json'] === undefined ? [] : [{ part: { content }, at }]
  })
  for (const { schema, at: place } of reachable(document, schemasIn(withoutForms))) {
    if (schema.format !== 'binary') continue
    report(
      place,
      namePlace(document, place),
      'is a file, which JSON cannot carry; offer multipart/form-data with this schema, or accept the id of an upload.',
    )
  }
}

/** Reports allOf in responses, and objects that do not list the keys that they always have. */
export const repliesArePlain: Rule = (context) => {
  const { document, report } = context
  for (const { schema, at: place } of reachable(document, schemasIn(repliesIn(context)))) {
    const where = namePlace(document, place)
    if (schema.allOf !== undefined)
      report([...place, 'allOf'], where, 'allOf in a response cannot be closed; write out its properties.')
    // A closed object is what a body stored: it has the keys that were sent.
    if (schema.additionalProperties === false) continue
    if (schema.properties !== undefined && schema.required === undefined && schema.minProperties === undefined)
      report(
        place,
        where,
        'no key of this object is required, so clients must expect that each is missing; list the keys that it always has in required.',
      )
  }
}

export const bodiesAreNotReplies: Rule = ({ document, operations, report }) => {
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
      `its body ${refPath(String($ref)).at(-1)} is also the response of ${other}; give the body its own schema, or the two drift apart.`,
    )
  }
}

/** Reports a schema that contains itself, because generators fail on such a type. */
export const schemasEnd: Rule = ({ document, report }) => {
  const { schemas = {} } = document.components ?? {}
  const below = new Map(Object.entries(schemas).map(([name, schema]) => [name, referredTo(schema)]))
  const reaches = (name: string, goal: string, seen: Set<string>): boolean =>
    (below.get(name) ?? []).some((each) => each === goal || (!seen.has(each) && reaches(each, goal, seen.add(each))))
  for (const name of below.keys()) {
    if (!reaches(name, name, new Set())) continue
    const advice = 'use a schema without that part inside, such as a reference'
    report(['components', 'schemas', name], name, `it contains itself; ${advice}.`)
  }
}

function referredTo(schema: unknown): string[] {
  return [...walk('schema', schema, [])].flatMap(({ node }) =>
    typeof node.$ref === 'string' ? [String(refPath(node.$ref).at(-1))] : [],
  )
}

export const statusesAreComplete: Rule = ({ document, operations, report }) => {
  for (const { id, operation, at, path, isPublic, parameters } of operations) {
    // A deferred response is an alternative to the one status of success.
    const codes = Object.entries(operation.responses ?? {}).flatMap(([code, reply]) =>
      isDeferred(document, reply) ? [] : [code],
    )
    const isTried = parameters.some(({ part }) => part.name === 'Accord-Dry-Run')
    const dryRun = isTried && (codes.includes('201') || codes.includes('202')) ? '200' : undefined
    // 206 (a part of 200) and the status of a dry run do not count as further statuses of success.
    const successes = codes.filter(
      (code) => /^2/.test(code) && !(code === '206' && codes.includes('200')) && code !== dryRun,
    )
    if (successes.length !== 1) {
      report(
        at,
        id,
        `${successes.length} statuses of success; the status comes from the contract, so list exactly one 2xx.`,
      )
    }
    const needed = new Map<string, string>()
    if (!isPublic) needed.set('401', 'it needs a signed-in caller')
    if (operation['x-permission'] !== undefined) needed.set('403', 'it needs a permission')
    if (codes.includes('206')) needed.set('416', 'it answers ranges')
    if (dryRun !== undefined) needed.set(dryRun, 'it supports a dry run')
    if (path.includes('{')) needed.set('404', 'its path names a record')
    if (resolve(document, operation.requestBody)) {
      for (const code of ['400', '413', '415', '422']) needed.set(code, 'it takes a body')
    }
    const [tried, done] = [operation.responses?.[dryRun ?? ''], successOf(document, operation)?.reply].map(schemaOf)
    if (tried && JSON.stringify(tried) !== JSON.stringify(done)) {
      report(
        [...at, 'responses', '200'],
        id,
        'a dry run returns the response of the write; use the same schema for both.',
      )
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

export const propertiesAreDescribed: Rule = ({ document, report }) => {
  for (const { kind, node, at } of partsOf(document)) {
    if (kind !== 'schema' || !isObject(node.properties)) continue
    for (const [name, property] of Object.entries(node.properties as Record<string, SchemaObject>)) {
      if (property.description || resolve(document, property)?.description) continue
      const place = [...at, 'properties', name]
      report(
        place,
        namePlace(document, place),
        'no description; its name alone tells readers too little, so write one.',
      )
    }
  }
}

export const schemasAreDescribed: Rule = ({ document, report }) => {
  for (const [name, schema] of Object.entries(document.components?.schemas ?? {})) {
    const at = ['components', 'schemas', name]
    if (!isObject(schema)) report(at, name, 'is not a schema; write one.')
    else {
      if (!schema.description) report(at, name, 'no description; readers of the docs need one, so describe it.')
      if (schema.example !== undefined || (Array.isArray(schema.examples) && schema.examples.length > 0)) continue
      // A schema that only wraps `data` needs no example, because the schema of `data` has one.
      const data: SchemaObject | undefined = (schema as SchemaObject).properties?.data
      if (data?.$ref !== undefined || data?.items?.$ref !== undefined) continue
      report(at, name, 'no example; readers copy from the docs, so add a valid one.')
    }
  }
}

function rawData(document: ContractDocument, reply: BodyOrResponse | undefined): SchemaObject | undefined {
  const data = resolve(document, schemaOf(reply))?.properties?.data
  return data?.items ?? data
}
