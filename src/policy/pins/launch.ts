/**
 * How a server is started or called: as much of it as somebody would change who wants another program in its place. What may be secret
 * (arguments, variables, the query of an address) is kept as a digest, or by its name alone.
 */
import { digestText } from '../../core/digest.ts'
import { clip } from '../../jsonrpc/limits.ts'

/** As much of a connection's target as counts here: an address, a command, or a connection that a program hands over. */
export type LaunchTarget =
  | string
  | URL
  | {
      readonly command: string
      readonly args?: readonly string[]
      readonly cwd?: string
      readonly env?: Readonly<Record<string, string>>
    }
  | { readonly start: unknown }

/** One thing that counts, by what it is called. */
interface LaunchFact {
  /** What is kept of it, and compared. */
  readonly kept: string
  /** What whoever is asked sees of it. */
  readonly shown: string
}

export type Launch = ReadonlyMap<string, LaunchFact>

/** Variables by which another program is loaded, or the same one made to do something else: their values count too. */
const steering =
  /^(PATH|SHELL|ENV|BASH_ENV|NODE_OPTIONS|NODE_PATH|(LD|DYLD)_\w+|PYTHON\w+|RUBY\w+|PERL5?\w+|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|npm_config_\w+|UV_\w+|PIP_\w+)$/i

/** Undefined for what a program hands over by itself: nobody else writes that. */
export async function launchOf(target: LaunchTarget): Promise<Launch | undefined> {
  const facts = new Map<string, LaunchFact>()
  const plain = (name: string, text: string): void => void facts.set(name, { kept: text, shown: clip(text) })
  const hidden = async (name: string, text: string, shown = clip(text)): Promise<void> =>
    void facts.set(name, { kept: await digestText(text), shown })
  if (typeof target === 'string' || target instanceof URL) {
    // What is no address is refused by whoever connects.
    if (!URL.canParse(target)) return undefined
    const { origin, pathname, search, username, password, protocol, host } = new URL(target)
    plain('address', origin === 'null' ? `${protocol}//${host}${pathname}` : `${origin}${pathname}`)
    if (search !== '') await hidden('query', search, '…')
    if (username !== '' || password !== '') await hidden('user', `${username}:${password}`, '…')
    return facts
  }
  if (!('command' in target)) return undefined
  plain('command', target.command)
  for (const [at, text] of (target.args ?? []).entries()) await hidden(`argument ${at + 1}`, text)
  if (target.cwd !== undefined) plain('folder', target.cwd)
  for (const [name, value] of Object.entries(target.env ?? {}).sort(([one], [other]) => (one < other ? -1 : 1)))
    if (steering.test(name)) await hidden(`variable ${clip(name)}`, value)
    else facts.set(`variable ${clip(name)}`, { kept: '', shown: '…' })
  return facts
}

/** How a launch differs from what was kept of another one, one line a difference; empty: it does not. */
export function launchChanges(before: Readonly<Record<string, string>>, now: Launch): readonly string[] {
  const changes: string[] = []
  for (const [name, { kept, shown }] of now) {
    const was = Object.hasOwn(before, name) ? before[name] : undefined
    if (was === kept) continue
    const from = was !== undefined && ['command', 'address', 'folder'].includes(name) ? `, was ${JSON.stringify(clip(was))}` : ''
    changes.push(`${was === undefined ? 'new' : 'other'} ${name}: ${JSON.stringify(shown)}${from}`)
  }
  for (const name of Object.keys(before)) if (!now.has(name)) changes.push(`no ${name} any more`)
  return changes
}

export function launchRecord(launch: Launch): Readonly<Record<string, string>> {
  return Object.fromEntries([...launch].map(([name, { kept }]) => [name, kept]))
}
