// The rule about keys that a client may send: the record shows them again.
import { propertiesOf, returnsRecord, shownBy } from '../operations.ts'
import { type ContractDocument, resolve, type SchemaObject, successOf, widestOf } from '../read.ts'
import type { Rule } from '../rule.ts'

/**
 * Reports keys of the bodies of operations that return the record and that the response lacks, at
 * any depth. A key is shown under its name, or as the record of its id: `lead_id` as `lead`,
 * `leads` or `lead_ids`. Passwords need no mark.
 */
export const writtenKeysAreShown: Rule = ({ document, operations, report }) => {
  for (const { id, operation, at } of operations) {
    if (!returnsRecord.test(id)) continue
    const body = resolve(document, operation.requestBody)
    const shown = shownBy(document, body, successOf(document, operation)?.reply)
    for (const key of hiddenKeys(document, widestOf(body), shown)) {
      report(
        [...at, 'requestBody'],
        id,
        `it accepts ${key}, and no key of its response shows the value, so a client cannot check it; show it, or mark it with writeOnly: true.`,
      )
    }
  }
}

function hiddenKeys(
  document: ContractDocument,
  body: SchemaObject | undefined,
  reply: SchemaObject | undefined,
  open: readonly unknown[] = [],
): string[] {
  const shown = propertiesOf(document, reply)
  if (!shown || open.includes(shown)) return []
  return Object.entries(propertiesOf(document, body) ?? {}).flatMap(([key, property]) => {
    const below = shown[key]
    // A union has other keys than the reply, so only objects and lists of them are compared.
    const { properties, items } = resolve(document, property) ?? {}
    if (below && !properties && !items) return []
    if (below) return hiddenKeys(document, property, below, [...open, shown]).map((each) => `${key}.${each}`)
    const { writeOnly, format } = { ...resolve(document, property), ...property }
    const base = key.replace(/(_file)?_ids?$/, '')
    const isShown = [base, `${base}s`, `${base}_id`, `${base}_ids`].some((name) => Object.hasOwn(shown, name))
    return writeOnly === true || format === 'password' || isShown ? [] : [key]
  })
}
