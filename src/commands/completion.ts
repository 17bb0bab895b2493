// `accord completion`: prints a script with which a shell completes commands, options and their
// values. The script is generated from the tree of commands and starts no process. @bomb.sh/tab is
// not used, because it starts this program for each key press and never completes file names.
import type { Command } from 'commander'

export type Shell = 'bash' | 'zsh' | 'fish'

interface Word {
  text: string
  description: string
  /** Whether a value follows, and the possible values if they are limited. */
  value?: { choices: readonly string[] }
}

/** A place in the command line: after `accord`, after `accord user` and so on. */
interface Place {
  /** The words of the command, without the name of the program. */
  path: string
  commands: Word[]
  options: Word[]
  /** The possible values of the first argument. */
  values: readonly string[]
}

export function completionScript(program: Command, shell: Shell): string {
  const places = placesBelow(program, [])
  return { bash: bashScript, zsh: zshScript, fish: fishScript }[shell](program.name(), places)
}

function placesBelow(command: Command, path: readonly string[]): Place[] {
  const help = command.createHelp()
  const commands = help.visibleCommands(command)
  const options = help.visibleOptions(command).map(({ long, description, required, argChoices }) => ({
    text: long ?? '',
    description,
    ...(required && { value: { choices: argChoices ?? [] } }),
  }))
  return [
    {
      path: path.join(' '),
      commands: commands.map((each) => ({ text: each.name(), description: each.description() })),
      options,
      values: command.registeredArguments[0]?.argChoices ?? [],
    },
    ...commands.flatMap((each) => (each.name() === 'help' ? [] : placesBelow(each, [...path, each.name()]))),
  ]
}

/** Returns the text in single quotes for bash and zsh. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/**
 * Returns the shell patterns of all words that lead to another place: `' user'`, `'user create'`.
 */
const steps = (places: readonly Place[]): string =>
  places
    .filter(({ path }) => path !== '')
    .map(({ path }) => quoted(path.includes(' ') ? path : ` ${path}`))
    .join('|')

const wordsAt = ({ commands, options, values }: Place): string =>
  [...commands.map(({ text }) => text), ...values, ...options.map(({ text }) => text)].join(' ')

/**
 * Returns the `case` branches for options that take a value. If an option has no choices, the shell
 * completes file names.
 */
const valueCases = (places: readonly Place[], action: (choices: string) => string): string =>
  places
    .flatMap(({ path, options }) =>
      options.flatMap(({ text, value }) =>
        value === undefined ? [] : [`    ${quoted(`${path} ${text}`)}) ${action(value.choices.join(' '))} ;;`],
      ),
    )
    .join('\n')

const bashScript = (name: string, places: readonly Place[]): string => `# bash completion of ${name}
_${name}() {
  # COMP_WORDS is split at colons, which names of commands contain.
  local line="\${COMP_LINE:0:COMP_POINT}" current='' place='' before='' found='' word words
  read -ra words <<< "$line"
  [[ $line == *' ' ]] || { current="\${words[\${#words[@]}-1]}"; words=("\${words[@]:0:\${#words[@]}-1}"); }
  for word in "\${words[@]:1}"; do
    case "$place $word" in
      ${steps(places)}) place="\${place:+$place }$word" ;;
    esac
    before="$word"
  done
  case "$place" in
${places.map((place) => `    ${quoted(place.path)}) found=${quoted(wordsAt(place))} ;;`).join('\n')}
  esac
  case "$place $before" in
${valueCases(places, (choices) => `found=${quoted(choices)}`)}
  esac
  COMPREPLY=($(compgen -W "$found" -- "$current"))
  [[ $current != *:* ]] || COMPREPLY=("\${COMPREPLY[@]#"\${current%"\${current##*:}"}"}")
}
complete -o default -F _${name} ${name}`

const described = ({ text, description }: Word): string => quoted(`${text.replaceAll(':', '\\:')}:${description}`)

const zshScript = (name: string, places: readonly Place[]): string => `#compdef ${name}
_${name}() {
  local place='' word
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$place $word" in
      (${steps(places)}) place="\${place:+$place }$word" ;;
    esac
  done
  case "$place \${words[CURRENT-1]}" in
${valueCases(places, (choices) => (choices === '' ? '_files; return' : `compadd -- ${choices}; return`)).replaceAll(/^ {4}'/gm, "    ('")}
  esac
  local -a found
  case "$place" in
${places
  .map(
    ({ path, commands, options, values }) =>
      `    (${quoted(path)}) found=(${[...commands, ...values.map((text) => ({ text, description: 'value' })), ...options].map(described).join(' ')}) ;;`,
  )
  .join('\n')}
  esac
  _describe ${name} found || _files
}
if [ "\${funcstack[1]}" = "_${name}" ]; then _${name} "$@"; else compdef _${name} ${name}; fi`

/** Returns the text in single quotes for fish. */
const fishQuoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

function fishScript(name: string, places: readonly Place[]): string {
  const lines = places.flatMap(({ path, commands, options, values }) => {
    const at = `complete -c ${name} -n ${fishQuoted(`__${name}_at ${path}`.trim())}`
    return [
      ...commands.map(({ text, description }) => `${at} -f -a ${fishQuoted(text)} -d ${fishQuoted(description)}`),
      ...(values.length > 0 ? [`${at} -f -a ${fishQuoted(values.join(' '))}`] : []),
      ...options.map(({ text, description, value }) => {
        const choices = value?.choices ?? []
        const argument =
          value === undefined ? '' : choices.length > 0 ? ` -x -a ${fishQuoted(choices.join(' '))}` : ' -r'
        return `${at} -l ${text.replace(/^--/, '')}${argument} -d ${fishQuoted(description)}`
      }),
    ]
  })
  return `# fish completion of ${name}
function __${name}_at
  set -l place ''
  for word in (commandline -opc)[2..-1]
    switch "$place $word"
      case ${steps(places).replaceAll('|', ' ')}
        set place (string trim -- "$place $word")
    end
  end
  test "$argv" = "$place"
end
${lines.join('\n')}`
}
