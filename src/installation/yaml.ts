// Writes documents as YAML. The contract takes seconds, so requests have it written by a worker
// thread (yaml.entry.ts).
import { createRequire } from 'node:module'
import type * as Yaml from 'yaml'
import { entryAt, startThread } from '../../db/entry-file.ts'
import type { YamlTask } from './yaml.entry.ts'

const load = createRequire(import.meta.url)

/**
 * Repeated objects are written out instead of as YAML aliases, because aliases are hard to read.
 */
const options = { aliasDuplicateObjects: false }

export const yamlOf = (document: object): string => (load('yaml') as typeof Yaml).stringify(document, options)

const thread = entryAt(import.meta.url, './yaml.entry')

export function toYamlInWorker(json: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const worker = startThread<YamlTask>(thread, { json, options })
    worker.once('message', (text: string) => resolve(Buffer.from(text)))
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('The contract could not be written as YAML.')))
    // The thread must not keep a closing server alive.
    worker.unref()
  })
}
