/**
 * Names of tools as a model sees them. Providers take 1 to 64 of A-Z a-z 0-9 _ -; servers take anything, and two of them may use the
 * same name: then each carries its server in front. The tail of a long name is kept, because that is where names differ.
 */

const longest = 64

export interface Named<T> {
  readonly name: string
  readonly of: T
}

/** `taken`: names that are not to be given. The order decides who keeps a plain name, so give servers in theirs. */
export function nameTools<T extends { readonly server: string; readonly tool: string }>(
  tools: readonly T[],
  taken: ReadonlySet<string> = new Set(),
): readonly Named<T>[] {
  const plain = new Map<string, number>()
  for (const { tool } of tools) plain.set(fit(tool), (plain.get(fit(tool)) ?? 0) + 1)
  const used = new Set([...taken].map(name => name.toLowerCase()))
  return tools.map(of => {
    const short = fit(of.tool)
    const wanted = plain.get(short) === 1 && !used.has(short.toLowerCase()) ? short : fit(`${of.server}_${of.tool}`)
    const name = unused(wanted, used)
    used.add(name.toLowerCase())
    return { name, of }
  })
}

export function fit(name: string): string {
  const safe = name.replace(/[^A-Za-z0-9_-]/g, '_')
  return safe === '' ? 'tool' : safe.slice(-longest)
}

function unused(name: string, used: ReadonlySet<string>): string {
  if (!used.has(name.toLowerCase())) return name
  for (let count = 2; ; count++) {
    const numbered = `${name.slice(-(longest - `${count}_`.length))}_${count}`
    if (!used.has(numbered.toLowerCase())) return numbered
  }
}
