// The thread of yaml.ts. Converts a document from JSON to YAML and ends.
import { parentPort, workerData } from 'node:worker_threads'
import { stringify } from 'yaml'

// Repeated objects are written out instead of as YAML aliases, because aliases are hard to read.
parentPort?.postMessage(stringify(JSON.parse(workerData as string), { aliasDuplicateObjects: false }))
