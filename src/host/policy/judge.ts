/** The decision itself: from the rules, what they count, and the lists of scopes. Asks nobody, changes nothing, waits for nothing. */
import { durationText } from '../../core/duration.ts'
import { quoted, type Why, why } from '../../core/why.ts'
import type { FeatureSetFacts } from '../../features/live/feature-sets/messages.ts'
import type { Scope } from '../../features/live/scopes/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Compiled } from './compile.ts'
import { isAbout, type ReadRule } from './conditions.ts'
import { type Counts, countedAs } from './counts.ts'
import { type Asked, effects, type Kind } from './rule.ts'
import { strongest } from './weigh.ts'

/** What decisions are taken from. */
export interface World {
  readonly compiled: Compiled
  readonly counts: Counts
  readonly now: number
  /** What a server declared; undefined where it did not. */
  facts(server: string, featureSet: string): FeatureSetFacts | undefined
  /** What a tool call acts on, read from its arguments; undefined where nobody reads them. */
  scopesOf(asked: Asked): readonly Scope[] | undefined
}

export type Judged =
  | { readonly do: 'allow'; readonly rule: string }
  | { readonly do: 'deny'; readonly why: Why; readonly retryAfterMs?: number }
  | Asking
  | { readonly do: 'hold'; readonly until: number; readonly why: Why }
  | { readonly do: 'coalesce'; readonly key: string; readonly withinMs: number; readonly rule: string }

export interface Asking {
  readonly do: 'ask'
  readonly rule: string
  /** What the question is about: of a tool call perhaps only its scope. */
  readonly about: Kind
  /** An approval is bound to exactly this. */
  readonly bound: unknown
  readonly scopes: readonly Scope[]
  /** The spelling of a scope is unusual: then only an approval of exactly this counts. */
  readonly flaw?: string
}

export function judge(world: World, asked: Asked): Judged {
  const rule = strongest(holding(world, asked))
  const said = rule === undefined ? unruled(world, asked) : ruled(world, rule, asked)
  if (asked.kind === 'scope') return judgeScope(world, asked, said)
  return asked.kind === 'tool' && said.do !== 'deny' ? judgeTool(world, asked, said) : said
}

/** The rules that are about it, now. */
export function holding({ compiled, counts, now }: World, asked: Asked): readonly ReadRule[] {
  return compiled.rules.filter(
    read =>
      read.until > now &&
      isAbout(read.conditions, asked) &&
      (read.hours === undefined || read.hours.contains(now)) &&
      (read.rule.when?.above === undefined || counts.wait(read, asked) > 0) &&
      (read.rule.when?.running === undefined || counts.running(read) >= read.rule.when.running),
  )
}

function unruled({ compiled }: World, asked: Asked): Judged {
  const rule = `otherwise.${asked.kind}`
  const effect = compiled.otherwise[asked.kind]
  if (effect === 'ask') return asking(asked, rule)
  if (effect === 'allow') return { do: 'allow', rule }
  return { do: 'deny', why: why('POLICY_DENIED', rule, `No rule allows ${wordsFor(asked)}`, allowFix(asked)) }
}

function ruled(world: World, read: ReadRule, asked: Asked): Judged {
  const { name, rule, hours, forMs, withinMs } = read
  const waitMs = world.counts.wait(read, asked)
  switch (rule.do) {
    case 'allow':
      return { do: 'allow', rule: name }
    case 'ask':
      return asking(asked, name)
    case 'coalesce':
      return asked.kind === 'push'
        ? { do: 'coalesce', key: countedAs(rule.by ?? 'origin', asked), withinMs, rule: name }
        : { do: 'allow', rule: name }
    case 'hold': {
      const until = Math.max(hours?.endsAfter(world.now) ?? 0, world.now + Math.max(forMs ?? 0, waitMs))
      const message = rule.message ?? `${capital(wordsFor(asked))} waits until ${new Date(until).toISOString()}`
      return { do: 'hold', until, why: why('POLICY_HELD', name, message, rule.fix ?? `Wait, or change rule ${clip(name)}`) }
    }
    case 'deny':
      return denied(world, read, asked, waitMs)
  }
}

function denied({ now }: World, { name, rule, hours }: ReadRule, asked: Asked, waitMs: number): Judged {
  const waits = waitMs > 0 ? waitMs : hours === undefined ? undefined : hours.endsAfter(now) - now
  const code = waitMs > 0 ? 'RATE_LIMITED' : rule.when?.running === undefined ? 'POLICY_DENIED' : 'TOO_MANY_RUNNING'
  const message = rule.message ?? `Rule ${clip(name)} refuses ${wordsFor(asked)}`
  const fix = rule.fix ?? (waits === undefined ? `Change rule ${clip(name)} to allow it` : `Try again in ${durationText(waits)}`)
  return { do: 'deny', why: why(code, name, message, fix), ...(waits !== undefined && { retryAfterMs: waits }) }
}

function asking(asked: Asked, rule: string): Asking {
  const { kind, server, featureSet, tool, payload, scope } = asked
  return { do: 'ask', rule, about: kind, bound: { kind, server, featureSet, tool, payload, scope }, scopes: scope ? [scope] : [] }
}

/** MCP Live 0.2 §7.6: blacklist, whitelist, and only then what the rules say. */
function judgeScope(world: World, asked: Asked, said: Judged): Judged {
  const { server, featureSet = '', scope } = asked
  const lists = world.compiled.scopes(server, featureSet)
  const verdict = scope === undefined ? undefined : lists?.judge(scope)
  const place = `servers.${server}.scopes.${featureSet}`
  if (verdict?.is === 'forbidden') {
    const message = `${quoted(verdict.text)} is on the blacklist of ${clip(featureSet)}`
    const fix = `Take ${clip(verdict.pattern)} from its blacklist, if ${clip(server)} may act there`
    return { do: 'deny', why: why('SCOPE_FORBIDDEN', `${place}.blacklist ${clip(verdict.pattern)}`, message, fix) }
  }
  if (said.do === 'deny' || scope === undefined) return said
  const scoped = world.facts(server, featureSet)?.scoped === true
  if (verdict?.is === 'allowed' && scoped) return { do: 'allow', rule: `${place}.whitelist ${clip(verdict.pattern)}` }
  if (said.do === 'hold') return said
  const flaw = verdict?.is === 'open' ? verdict.flaw : undefined
  if (said.do === 'allow' && scoped && flaw === undefined) return said
  const rule = said.do === 'allow' && flaw !== undefined ? `${place} (spelling)` : said.rule
  const bound = { server, featureSet, label: scope.label, payload: scope.payload }
  return { do: 'ask', rule, about: 'scope', bound, scopes: [scope], ...(flaw !== undefined && { flaw }) }
}

/** A tool acts where its arguments say; in a scoped feature set that has to be approved too. */
function judgeTool(world: World, asked: Asked, said: Judged): Judged {
  const { server, featureSet = '', scope } = asked
  const scoped = world.facts(server, featureSet)?.scoped === true
  const scopes = world.scopesOf(asked) ?? (scope === undefined ? [] : [scope])
  if (scopes.length === 0) return scoped && said.do === 'allow' ? unknownScope(asked) : said
  const verdicts = scopes.map(each => judge(world, scopeOf(asked, each)))
  const open = verdicts.filter(verdict => verdict.do === 'ask')
  const worst = verdicts.reduce((a, b) => (effects.indexOf(b.do) < effects.indexOf(a.do) ? b : a))
  if (worst.do === 'deny') return worst
  // Where a server declares no scopes, only what is forbidden counts.
  if (!scoped || effects.indexOf(said.do) <= effects.indexOf(worst.do)) return said
  if (worst.do !== 'ask' || open.length === 1) return worst
  return { ...worst, bound: open.map(({ bound }) => bound), scopes: open.flatMap(each => each.scopes) }
}

function scopeOf({ server, featureSet, tags, origin }: Asked, scope: Scope): Asked {
  return {
    kind: 'scope',
    server,
    scope,
    ...(featureSet !== undefined && { featureSet }),
    ...(tags !== undefined && { tags }),
    ...(origin !== undefined && { origin }),
  }
}

function unknownScope(asked: Asked): Asking {
  return { ...asking(asked, 'scope-unknown'), flaw: 'what the call acts on is not known: give an extractor for the tool' }
}

/** What is wanted, for sentences. */
export function wordsFor({ kind, server, featureSet, tool, scope }: Asked): string {
  const where = featureSet === undefined ? clip(server) : `${clip(featureSet)} of ${clip(server)}`
  if (kind === 'definition') return `another definition of the tool ${clip(tool ?? '')} of ${clip(server)}`
  if (kind === 'tool') return `the tool ${clip(tool ?? '')} of ${clip(server)}`
  if (kind === 'scope') return `${quoted(scope?.label ?? '')} for ${where}`
  return `${nouns[kind]} ${where}`
}

const nouns: Readonly<Record<Exclude<Kind, 'tool' | 'scope'>, string>> = {
  push: 'an event from',
  infer: 'an inference for',
  sample: 'sampling for',
  elicit: 'a question from',
  roots: 'the roots for',
  set: 'the feature set',
  inject: 'context from',
  definition: 'a definition of',
}

export function allowFix({ kind, server, featureSet, tool }: Asked): string {
  if (kind === 'set') return `Enable ${clip(featureSet ?? '')} for server ${clip(server)}: servers.${clip(server)}.enable`
  const more = [featureSet && `featureSet ${clip(featureSet)}`, tool && `tool ${clip(tool)}`].filter(Boolean).join(', ')
  return `Add a rule that allows ${kind} for server ${clip(server)}${more === '' ? '' : ` (${more})`}`
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}
