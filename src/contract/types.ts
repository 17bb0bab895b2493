// The types of the input and the reply of each operation, by operationId. They derive from the
// generated types, so the compiler checks every handler against openapi.yaml.

import type { operations as facts } from './operations.gen.ts'
import type { Download } from './output/download.ts'
import type { components, operations } from './schema.gen.ts'

export type { EventBase, OperationFact } from './operations.gen.ts'

type Facts = typeof facts

/** The ids of the operations that need a handler. http/docs/docs.ts serves all other operations. */
export type OperationId = { [O in keyof Facts]: Facts[O]['servedBy'] extends 'handler' ? O : never }[keyof Facts]

/**
 * The operation at the path of `O` followed by `/Word`: `listLeadHistory` for `getLead` and
 * `history`.
 */
export type OperationBelow<O extends OperationId, Word extends string> = {
  [Each in OperationId]: Facts[Each]['path'] extends `${Facts[O]['path']}/${Word}` ? Each : never
}[OperationId]

export type Schema<Name extends keyof components['schemas']> = components['schemas'][Name]

type Parameters<O extends OperationId> = operations[O]['parameters']

export type Query<O extends OperationId> = NonNullable<Parameters<O>['query']>

export type Params<O extends OperationId> = Parameters<O> extends { path: infer P } ? P : Record<string, never>

/** The body of an operation. A form has the fields of the JSON body and also files. */
export type Body<O extends OperationId> = operations[O] extends { requestBody?: infer R }
  ? NonNullable<R> extends { content: { 'multipart/form-data': infer F } }
    ? F
    : NonNullable<R> extends { content: { 'application/json': infer B } }
      ? B
      : Record<string, never>
  : Record<string, never>

type Success = 200 | 201 | 202

type Content<O extends OperationId> = {
  [S in keyof operations[O]['responses'] & Success]: operations[O]['responses'][S] extends { content: infer C }
    ? C
    : never
}[keyof operations[O]['responses'] & Success]

type Json<O extends OperationId> = Content<O> extends { 'application/json': infer R } ? R : never

/**
 * The reply of an operation. JSON has the type of its schema, any other media type is a `Download`,
 * and a reply without a body is undefined.
 */
export type Reply<O extends OperationId> = [Content<O>] extends [never]
  ? undefined
  : Json<O> | (Exclude<keyof Content<O>, 'application/json'> extends never ? never : Download)

/** The record inside a reply: `data` of a single record, or an element of `data` of a list. */
export type Data<O extends OperationId> = Json<O> extends { data: infer D } ? (D extends (infer E)[] ? E : D) : never

/**
 * The sort names of a list, without the names for descending order, which begin with a minus sign.
 */
export type SortName<O extends OperationId> =
  Query<O> extends { sort?: (infer S)[] } ? (S extends `-${string}` ? never : S & string) : never

/** The query parameters of lists that do not filter by a resource's own fields. */
type ListParameter =
  | ('page' | 'per_page' | 'count' | 'cursor' | 'sort' | 'include' | 'fields' | 'q')
  | ('id' | 'created_at' | 'updated_at' | 'custom_attributes' | 'external_id' | 'view')

/**
 * The fields that a list filters by. `lead_value[gte]` and `lead_value[lte]` filter by one field.
 */
export type FilterName<O extends OperationId> = Exclude<
  keyof Query<O> extends infer P ? (P extends `${infer Field}[${string}]` ? Field : P & string) : never,
  ListParameter
>

type KeysOf<T> = T extends unknown ? keyof T & string : never

/**
 * The properties that the bodies of two operations may have, without attributes of installations.
 */
export type BodyField<C extends OperationId, U extends OperationId> = Exclude<
  KeysOf<Body<C>> | KeysOf<Body<U>>,
  'custom_attributes' | 'external_ids'
>
