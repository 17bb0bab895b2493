// The thread of yaml.ts: writes one document as YAML and ends.
import { parentPort, workerData } from 'node:worker_threads'
import { stringify, type ToStringOptions } from 'yaml'

export interface YamlTask {
  json: string
  options: ToStringOptions & { aliasDuplicateObjects: boolean }
}

const { json, options } = workerData as YamlTask
parentPort?.postMessage(stringify(JSON.parse(json), options))
