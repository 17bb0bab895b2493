// Loads the listener modules that ACCORD_LISTENERS names: files, folders or packages.
// At start, each default export is called once with the typed emitter, in the configured order. See
// extensions.example.mjs.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { isAbsolute, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ConfigError } from './config/config.ts'
import type { Emitter } from './kernel/write/events.ts'

/**
 * The default export of a listener module. The function must register its listeners before it
 * returns.
 */
export type Extension = (events: Emitter) => void

/**
 * Loads all modules in order. Throws ConfigError for the first module that cannot be loaded; the
 * message names this module and its problem.
 */
export async function loadExtensions(names: readonly string[], folder = process.cwd()): Promise<Extension[]> {
  const extensions: Extension[] = []
  for (const name of names) {
    for (const address of addressesOf(name, folder)) extensions.push(await load(name, address))
  }
  return extensions
}

/**
 * Returns the URLs of the modules that `name` refers to: a file, a package, or all modules in a
 * folder, sorted by name. A folder with a package.json counts as a package.
 */
function addressesOf(name: string, folder: string): string[] {
  const path = resolve(folder, name)
  if (!existsSync(path)) {
    if (isAbsolute(name) || /^\.{1,2}([/\\]|$)/.test(name) || /\.[cm]?js$/.test(name)) {
      throw refused(name, `which does not exist (looked at ${path})`)
    }
    return [packageAddress(name, folder)]
  }
  if (statSync(path).isFile()) return [pathToFileURL(path).href]
  if (existsSync(join(path, 'package.json'))) return [pathToFileURL(join(path, mainOf(path))).href]
  const files = readdirSync(path).filter((file) => /\.m?js$/.test(file))
  if (files.length === 0) throw refused(name, 'a folder without .mjs or .js files')
  return files.sort().map((file) => pathToFileURL(join(path, file)).href)
}

function mainOf(path: string): string {
  const { main } = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8')) as { main?: string }
  return main ?? (existsSync(join(path, 'index.mjs')) ? 'index.mjs' : 'index.js')
}

/**
 * Returns the URL of a package. Resolves the package from the working folder, or else from this
 * program.
 */
function packageAddress(name: string, folder: string): string {
  try {
    return pathToFileURL(createRequire(join(folder, 'package.json')).resolve(name)).href
  } catch {
    return name
  }
}

async function load(name: string, address: string): Promise<Extension> {
  let loaded: { default?: unknown }
  try {
    loaded = (await import(address)) as { default?: unknown }
  } catch (cause) {
    throw refused(name, `which cannot be loaded: ${sentence(cause)}`, cause)
  }
  const extend = loaded.default
  if (typeof extend !== 'function') {
    throw refused(name, 'whose default export is not a function that takes the emitter')
  }
  return (events) => {
    let answer: unknown
    try {
      answer = extend(events)
    } catch (cause) {
      throw refused(name, `which failed: ${sentence(cause)}`, cause)
    }
    if (answer instanceof Promise) {
      // An unhandled rejection would end the process before the error below is shown.
      answer.catch(() => {})
      throw refused(name, 'whose default export is async; register the listeners before returning')
    }
  }
}

function refused(name: string, problem: string, cause?: unknown): ConfigError {
  const error = new ConfigError('ACCORD_LISTENERS', `names "${name}", ${problem}.`.replace(/\.\.$/, '.'))
  if (cause !== undefined) error.cause = cause
  return error
}

const sentence = (cause: unknown): string =>
  (cause instanceof Error ? cause.message : String(cause)).split('\n')[0] ?? ''
