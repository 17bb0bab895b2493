// The command tree: each command has help with valid examples, mistakes end with exit code 2 and a
// sentence, and shells complete all commands and options.
import { spawnSync } from 'node:child_process'
import { CommanderError } from 'commander'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { reportFailure } from '../../src/commands/command-error.ts'
import { completionScript } from '../../src/commands/completion.ts'
import { createProgram } from '../../src/commands/program.ts'
import { type Leaf, leafCommands } from '../support/commands.ts'

let printed: string
beforeEach(() => {
  printed = ''
  for (const stream of [process.stdout, process.stderr])
    vi.spyOn(stream, 'write').mockImplementation((text) => {
      printed += text
      return true
    })
})
afterEach(() => vi.restoreAllMocks())

/** Returns the printed help, including texts of addHelpText. */
function helpOf({ command }: Leaf): string {
  printed = ''
  command.outputHelp()
  return printed
}

const examplesIn = (help: string): string[] =>
  (/\nExamples:\n((?: {2}.*\n)+)/.exec(help)?.[1] ?? '')
    .trimEnd()
    .split('\n')
    .map((line) => line.trim())

/** Returns the words after the last `accord` in a line, up to a redirection or pipe. */
function wordsOf(line: string): string[] {
  const [, rest = ''] = /.*\baccord (.*?)(?: [<>|].*|\))?$/.exec(line) ?? []
  return [...rest.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, bare]) => double ?? single ?? bare ?? '',
  )
}

/** Parses a command line without running its command. */
function parse(words: readonly string[]): { path: string; options: object } {
  const program = createProgram()
  let called = { path: '', options: {} }
  for (const { path, command } of leafCommands(program))
    command.action(() => {
      called = { path, options: command.opts() }
    })
  program.parse([...words], { from: 'user' })
  return called
}

describe('each command', () => {
  it.each(leafCommands().map((leaf) => [leaf.path, leaf] as const))('%s has examples that parse', (path, leaf) => {
    const examples = examplesIn(helpOf(leaf))
    expect(examples.length).toBeGreaterThan(0)
    for (const line of examples) expect([line, parse(wordsOf(line)).path]).toEqual([line, path])
  })

  it('that is finished before its output is read prints JSON on request', () => {
    const without = leafCommands().filter(({ command }) => !command.options.some(({ long }) => long === '--json'))
    // These commands serve, generate or write files, print only a script or a URL, or always print
    // JSON.
    expect(without.map(({ path }) => path).sort()).toEqual(
      ['bulk', 'completion', 'demo', 'export', 'open', 'regenerate', 'serve', 'start', 'worker'].sort(),
    )
  })

  it('reads the options that its code asks for', () => {
    expect(parse(['backup', '--without-secret']).options).toEqual({ withoutSecret: true })
  })
})

describe('a mistake in the command line', () => {
  it.each([
    [['strat'], 'Did you mean start?'],
    [['user', 'create', '--name', 'Ada'], "required option '--email <address>' not specified"],
    [['jobs', 'list', '--state', 'bured'], 'Allowed choices are waiting, blocked, running, buried.'],
    [['restore'], "missing required argument 'backup'"],
    [['import', 'x.csv', '--type', 'person'], 'Allowed choices are persons, organizations, products, leads.'],
    [['restore', '--verfy', 'x'], 'Did you mean --verify?'],
    [['completion', 'tcsh'], 'Allowed choices are bash, zsh, fish.'],
    [[], 'Exit codes:'],
  ])('%j exits with 2 and says what is wrong, without a stack', (words, sentence) => {
    expect(exitCodeOf(words)).toBe(2)
    expect(printed).toContain(sentence)
    expect(printed).not.toMatch(/\n\s+at /)
  })

  it('is none to ask for help or for the version', () => {
    for (const words of [['--help'], ['--version'], ['user', 'create', '--help']]) expect(exitCodeOf(words)).toBe(0)
  })
})

/** Returns the exit code of a command line that does not run a command. */
function exitCodeOf(words: readonly string[]): number {
  const before = process.exitCode
  try {
    createProgram().parse([...words], { from: 'user' })
    return -1
  } catch (error) {
    expect(error).toBeInstanceOf(CommanderError)
    reportFailure(error)
    return Number(process.exitCode)
  } finally {
    process.exitCode = before
  }
}

describe('completion', () => {
  const script = completionScript(createProgram(), 'bash')

  /** Returns the completions of bash at the end of a line. */
  function offered(line: string): string[] {
    const ask = `${script}\nCOMP_LINE=${JSON.stringify(line)}\nCOMP_POINT=\${#COMP_LINE}\n_accord\nprintf '%s\\n' "\${COMPREPLY[@]}"`
    const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', ask], { encoding: 'utf8' })
    expect(stderr).toBe('')
    return stdout.split('\n').filter(Boolean)
  }

  it('of bash offers commands, options and values of the place in the line', () => {
    expect(offered('accord ')).toEqual(expect.arrayContaining(['install', 'user', 'campaign:process', '--version']))
    expect(offered('accord st')).toEqual(['start'])
    expect(offered('accord user ')).toEqual(
      expect.arrayContaining(['create', 'list', 'set-password', 'disable', 'enable']),
    )
    expect(offered('accord user create --e')).toEqual(['--email'])
    expect(offered('accord import people.csv --type ')).toEqual(['persons', 'organizations', 'products', 'leads'])
    expect(offered('accord completion z')).toEqual(['zsh'])
    expect(offered('accord nonsense --j')).toEqual([])
    // Bash replaces only the part after the colon.
    expect(offered('accord campaign:p')).toEqual(['process'])
  })

  it('of bash leaves file names to the shell', () => {
    expect(offered('accord import --separator ')).toEqual([])
    expect(offered('accord restore /mnt/back')).toEqual([])
    expect(script).toContain('complete -o default -F _accord accord')
  })

  it('of every shell names every command, and its quotes are closed', () => {
    for (const shell of ['bash', 'zsh', 'fish'] as const) {
      const text = completionScript(createProgram(), shell)
      for (const { path } of leafCommands())
        expect(text).toContain(
          path
            .split(' ')
            .at(-1)
            ?.replaceAll(':', shell === 'zsh' ? '\\:' : ':'),
        )
      const bare = text
        .replaceAll("'\\''", '')
        .replaceAll("\\'", '')
        .replaceAll(/^ *#.*$/gm, '')
      expect([shell, (bare.match(/'/g) ?? []).length % 2]).toEqual([shell, 0])
    }
  })
})
