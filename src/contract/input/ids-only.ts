// Reads a contract in which references are ids only, because only requests find records by name.
// The validation of other bodies and the generated types use it.

/**
 * A replacer for `JSON.stringify`. Replaces the schema of a reference by its first branch, the id.
 */
export const idsOnly = (_key: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && 'x-reference' in value && 'oneOf' in value
    ? { ...(value.oneOf as object[])[0], ...('description' in value && { description: value.description }) }
    : value
