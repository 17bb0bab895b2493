// The thread of yaml.ts: receives a document as JSON, writes it as YAML and ends.
import { parentPort, workerData } from 'node:worker_threads'
import { stringify } from 'yaml'

// Repeated objects are written out instead of as YAML aliases, because aliases are hard to read.
parentPort?.postMessage(stringify(JSON.parse(workerData as string), { aliasDuplicateObjects: false }))
