// Converts a document to YAML on a thread (yaml.entry.ts), because the contract takes a second.
import { entryAt, startThread } from '../../db/entry-file.ts'

const thread = entryAt(import.meta.url, './yaml.entry')

export function toYamlInWorker(json: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const worker = startThread<string>(thread, json)
    worker.once('message', (text: string) => resolve(Buffer.from(text)))
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('The contract could not be written as YAML.')))
    // The thread must not keep a closing server alive.
    worker.unref()
  })
}
