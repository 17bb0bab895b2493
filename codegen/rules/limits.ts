// Rules about values: a text that clients send has a maximum length, and every integer has bounds.
import { namePlace, type Path, type SchemaObject } from '../read.ts'
import type { LintContext, Rule } from '../rule.ts'
import { bodiesIn, parametersIn, reachable, repliesIn, schemasIn, schemaTypes } from './reach.ts'

/** Formats that limit the length. The limit of the form applies to `binary`. */
const shortFormats = new Set(['date', 'date-time', 'binary'])

export const textsAreBounded: Rule = (context) => {
  for (const { schema, at } of sentSchemas(context)) {
    const { maxLength, format, pattern, enum: values } = schema
    if (!schemaTypes(schema).includes('string') || maxLength !== undefined || values !== undefined) continue
    if ('const' in schema || shortFormats.has(String(format)) || isShort(pattern)) continue
    context.report(
      at,
      namePlace(context.document, at),
      'clients send this text, and without a maximum length it may take megabytes; add maxLength.',
    )
  }
}

/** Returns whether the pattern covers the whole text and repeats no part without a limit. */
function isShort(pattern: unknown): boolean {
  if (typeof pattern !== 'string' || !/^\^.*\$$/.test(pattern)) return false
  const withoutClasses = pattern.replaceAll(/\\./g, 'x').replaceAll(/\[[^\]]*\]/g, 'x')
  return !/[*+]|\{\d+,\}/.test(withoutClasses)
}

export const integersAreBounded: Rule = (context) => {
  for (const { schema, at } of allSchemas(context)) {
    if (!schemaTypes(schema).includes('integer') || schema.enum !== undefined || 'const' in schema) continue
    const missing = [
      ...(schema.minimum === undefined && schema.exclusiveMinimum === undefined ? ['minimum'] : []),
      ...(schema.maximum === undefined && schema.exclusiveMaximum === undefined ? ['maximum'] : []),
    ]
    if (missing.length === 0) continue
    context.report(
      at,
      namePlace(context.document, at),
      `an integer without bounds may fit no column and no type of a client; add ${missing.join(' and ')}.`,
    )
  }
}

/** Yields every schema in the bodies and parameters of the contract. */
const sentSchemas = (context: LintContext): Generator<{ schema: SchemaObject; at: Path }> =>
  reachable(context.document, [...schemasIn(bodiesIn(context)), ...parametersIn(context)])

/** The same, and every schema in the replies. */
const allSchemas = (context: LintContext): Generator<{ schema: SchemaObject; at: Path }> =>
  reachable(context.document, [
    ...schemasIn(bodiesIn(context)),
    ...parametersIn(context),
    ...schemasIn(repliesIn(context)),
  ])
