// Gives the body of each upsert the example of the body that creates the record. The schema of the
// body is that of an update, and the example of an update alone would not create a record.
import { type ContractDocument, isObject, listOperations, resolve, type SchemaObject } from './read.ts'

const externalPath = '/external/{source}/{external_id}'

/** Returns a copy of the document in which the body of each upsert has an example. */
export function withUpsertExamples(document: ContractDocument): ContractDocument {
  const made = structuredClone(document)
  const all = listOperations(made)
  for (const { path, method, operation } of all) {
    if (method !== 'put' || !path.endsWith(externalPath)) continue
    const list = path.slice(0, -externalPath.length)
    const create = all.find((each) => each.method === 'post' && each.path === list)
    const example = exampleOf(made, create?.operation.requestBody?.content?.['application/json']?.schema)
    const media = operation.requestBody?.content?.['application/json']
    if (media && example !== undefined) media.example = example
  }
  return made
}

/** Returns the first example of the schema; undefined without one. */
function exampleOf(document: ContractDocument, schema: SchemaObject | undefined): unknown {
  const examples = resolve(document, schema)?.examples
  return Array.isArray(examples) && isObject(examples[0]) ? examples[0] : undefined
}
