/** Patterns of files as package.json and ignore files have them: a folder, names with stars in them, and a ! that takes out again. */

export interface Pattern {
  /** Matches it and all below it. */
  readonly inside: RegExp
  /** Whether a path is a folder on the way to it. */
  readonly above: (path: string) => boolean
  readonly anywhere: boolean
}

/** `*` and `?` stay within a name, `**` does not. */
export function patternOf(word: string): Pattern {
  const plain = word.replace(/^\.?\//, '').replace(/\/$/, '')
  const source = plain
    .split('/')
    .map(part =>
      part === '**'
        ? '.*'
        : part
            .replace(/[.+^${}()|[\]\\]/g, '\\$&')
            .replace(/\*/g, '[^/]*')
            .replace(/\?/g, '[^/]'),
    )
    .join('/')
  const steps = plain.split('/')
  const above = (path: string): boolean => {
    const parts = path.split('/')
    return parts.length < steps.length && parts.every((part, at) => steps[at] === part || /[*?]/.test(steps[at] ?? ''))
  }
  return { inside: new RegExp(`^${source.replaceAll('.*/', '(?:.*/)?')}(?:/.*)?$`), above, anywhere: !plain.includes('/') }
}

/** Whether a path is one of a list of files, or a folder on the way to one. A folder stands for all in it; `!` takes out again. */
export function wantedBy(files: readonly string[]): (path: string) => boolean {
  const patterns = files.filter(word => !word.startsWith('!')).map(patternOf)
  const without = files.filter(word => word.startsWith('!')).map(word => patternOf(word.slice(1)))
  return path => {
    if (without.some(({ inside }) => inside.test(path))) return false
    return patterns.some(({ inside, above }) => inside.test(path) || above(path))
  }
}
