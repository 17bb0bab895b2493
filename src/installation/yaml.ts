// Writes documents as YAML. The contract takes seconds, so requests use a worker thread for it.
import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import type * as Yaml from 'yaml'

const load = createRequire(import.meta.url)

/**
 * Repeated objects are written out instead of as YAML aliases, because aliases are hard to read.
 */
const options = { aliasDuplicateObjects: false }

export const yamlOf = (document: object): string => (load('yaml') as typeof Yaml).stringify(document, options)

/**
 * The source of the worker thread. It imports only the YAML library and gets all input from
 * workerData.
 */
const program = `
const { parentPort, workerData: { library, json, options } } = require('node:worker_threads')
parentPort.postMessage(require(library).stringify(JSON.parse(json), options))
`

export function toYamlInWorker(json: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const workerData = { library: load.resolve('yaml'), json, options }
    const worker = new Worker(program, { eval: true, workerData, env: {}, stdin: false })
    worker.once('message', (text: string) => resolve(Buffer.from(text)))
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('The contract could not be written as YAML.')))
    // The thread must not keep a closing server alive.
    worker.unref()
  })
}
