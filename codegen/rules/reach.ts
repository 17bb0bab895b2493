// Finds the schemas of bodies, parameters and responses, for the rules that check them.
import { walk } from '../grammar.ts'
import { type BodyOrResponse, type ContractDocument, locate, type Path, type SchemaObject } from '../read.ts'
import type { LintContext } from '../rule.ts'

/** A part of the contract and its path. */
export interface Placed<T> {
  part: T
  at: Path
}

export const schemaTypes = (schema: SchemaObject): string[] => (schema.type === undefined ? [] : [schema.type].flat())

export function requestBodyAt(
  document: ContractDocument,
  body: BodyOrResponse | undefined,
  at: Path,
): Placed<BodyOrResponse> | undefined {
  return locate(document, body, [...at, 'requestBody'])
}

/** Returns the bodies of all operations. */
export const bodiesIn = ({ document, operations }: LintContext): Placed<BodyOrResponse>[] =>
  operations.flatMap(({ operation, at }) => requestBodyAt(document, operation.requestBody, at) ?? [])

/** Returns the responses of all operations. */
export const repliesIn = ({ document, operations }: LintContext): Placed<BodyOrResponse>[] =>
  operations.flatMap(({ operation, at }) =>
    Object.entries(operation.responses ?? {}).flatMap(
      ([status, reply]) => locate(document, reply, [...at, 'responses', status]) ?? [],
    ),
  )

/** Returns the schemas of the parameters of all operations. */
export const parametersIn = ({ operations }: LintContext): Placed<SchemaObject>[] =>
  operations.flatMap(({ parameters }) =>
    parameters.flatMap(({ part: { schema }, at }) => (schema ? [{ part: schema, at: [...at, 'schema'] }] : [])),
  )

/** Returns the schema of each media type of the bodies or responses. */
export const schemasIn = (bodies: readonly Placed<BodyOrResponse>[]): Placed<SchemaObject>[] =>
  bodies.flatMap(({ part, at }) =>
    Object.entries(part.content ?? {}).flatMap(([type, { schema }]) =>
      schema ? [{ part: schema, at: [...at, 'content', type, 'schema'] }] : [],
    ),
  )

/** Yields the schemas and every schema in them, at any depth, once. */
export function* reachable(
  document: ContractDocument,
  roots: readonly Placed<SchemaObject>[],
): Generator<{ schema: SchemaObject; at: Path }> {
  const seen = new Set<unknown>()
  const queue = [...roots]
  for (let next = queue.shift(); next; next = queue.shift()) {
    if (seen.has(next.part)) continue
    for (const { node, at } of walk('schema', next.part, next.at)) {
      if (seen.has(node)) continue
      seen.add(node)
      if (typeof node.$ref !== 'string') yield { schema: node, at }
      else {
        const found = locate<SchemaObject>(document, node, at)
        if (found) queue.push(found)
      }
    }
  }
}
