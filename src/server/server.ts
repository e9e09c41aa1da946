/** `createServer`: a thin façade over the features' server sides. */
import { type Clock, realClock } from '../core/clock.ts'
import { toMilliseconds } from '../core/duration.ts'
import { createSeal } from '../core/handle.ts'
import { Engine } from '../engine/engine.ts'
import type { Exchange } from '../engine/exchange.ts'
import type { Limits } from '../engine/limits.ts'
import type { Method } from '../engine/method.ts'
import { createPaging } from '../engine/paging.ts'
import type { Side } from '../engine/plan.ts'
import type { Shared } from '../engine/sharing.ts'
import type { Layer } from '../engine/stages.ts'
import type { Aim, Scopes } from '../features/mcp/authorization/messages.ts'
import { type AuthorizationServer, authorizationServer } from '../features/mcp/authorization/server.ts'
import { cacheHint } from '../features/mcp/caching/messages.ts'
import { cancellation, sendCancel } from '../features/mcp/cancellation/receiver.ts'
import { completionServer } from '../features/mcp/completion/server.ts'
import { elicitationErrors } from '../features/mcp/elicitation/messages.ts'
import { replayAsking, unsealLayer } from '../features/mcp/input-required/server.ts'
import { lifecycleServer } from '../features/mcp/lifecycle/server.ts'
import { loggingServer } from '../features/mcp/logging/server.ts'
import { progressReceiver } from '../features/mcp/progress/client.ts'
import { listPrompts } from '../features/mcp/prompts/messages.ts'
import { type PromptFacts, type PromptHandler, promptsServer } from '../features/mcp/prompts/server.ts'
import { isTemplate, type ResourceFacts, type ResourceHandler } from '../features/mcp/resources/entry.ts'
import { listResources, listResourceTemplates } from '../features/mcp/resources/messages.ts'
import { type ResourcesServer, resourcesServer } from '../features/mcp/resources/server.ts'
import { rootsServer } from '../features/mcp/roots/server.ts'
import { subscriptionsServer } from '../features/mcp/subscriptions/server.ts'
import type { RunningLimitOptions } from '../features/mcp/tasks/running-limits.ts'
import { tasksServer } from '../features/mcp/tasks/server.ts'
import { listTools } from '../features/mcp/tools/messages.ts'
import { type ToolHandler, toolsServer } from '../features/mcp/tools/server.ts'
import { facadeParts } from '../features/reliability/facade/facts.ts'
import { recommendationsServer } from '../features/reliability/recommendations/server.ts'
import type { StateRule } from '../features/reliability/session-state/server.ts'
import type { Carrier } from '../jsonrpc/connection.ts'
import { Spoken } from '../revisions/index.ts'
import type { Store } from '../stores/store.ts'
import type { Listening } from '../transports/http/listening.ts'
import type { Server } from './api.ts'
import { Context } from './context.ts'
import { davioeSide, type FacadeOptions, facadeSide } from './dialects.ts'
import { showBeside } from './documents.ts'
import { serverEvents } from './events.ts'
import { importerName, importerOf } from './importer.ts'
import { offerLifecycle } from './lifecycle-events.ts'
import { serverLive } from './live.ts'
import { callLayer, serverLog } from './logging.ts'
import { manifestDocument, serverManifest } from './manifest.ts'
import { middlewareLayer } from './middleware.ts'
import { checkServerOptions, infoOf, limitsOf, type OfferedKind, type ServerOptions } from './options.ts'
import { createRates } from './rates.ts'
import type { ServerReferences } from './references.ts'
import { type Registration, register } from './registration.ts'
import { reliability } from './reliability.ts'
import { fetchFace, serveHttp, serveStdio } from './serve.ts'

export type { Server, ToolOptions } from './api.ts'
export type { Registration } from './registration.ts'

const describe = 'give the tool a description: a model knows nothing else of it'

/**
 * Makes an MCP server that speaks every revision: add tools, resources, prompts and events to it, then `listen()` on HTTP, serve
 * `stdio()`, or hand `fetch` to a web-standard runtime.
 * @example
 * const server = createServer({ name: 'shop', version: '1.0.0' })
 * server.tool('stock', { description: 'What is in stock' }, () => '3 loaves')
 * await server.listen({ port: 3000 })
 */
export function createServer(options: ServerOptions): Server {
  checkServerOptions(options)
  const clock: Clock = options.clock ?? realClock
  const { limits, rates: rateOptions } = limitsOf(options)
  const seal = createSeal({ secrets: options.secret, clock })
  const rates = createRates(rateOptions, clock, tool => tools.catalog.get(tool)?.facts.dedupe !== undefined)
  const offers = (kind: OfferedKind): boolean => options.offers?.includes(kind) === true
  const { log, trace } = serverLog(options)
  const cache = cacheHint(options.cache)
  const paging = createPaging({ seal, pageSize: options.pageSize ?? 500, cache, cursorMs: 3_600_000, now: clock.now })
  const context = (exchange: Exchange): Context => new Context(exchange, rates, reliable)
  const replay = { seal, clock, expiresMs: toMilliseconds(options.askTimeout ?? '10m'), rounds: 16 }
  const needs = ([kind, name]: Aim): Scopes => {
    if (kind === 'tool') return tools.catalog.get(name)?.facts.scopes
    if (kind === 'prompt') return prompts.catalog.get(name)?.scopes
    // Suggestions may tell as much as what they are for.
    return kind === 'template' ? resources.templates.get(name)?.scopes : resources.scopes(name)
  }
  const stateRule = (tool: string): StateRule | undefined => tools.catalog.get(tool)?.facts.state
  const usesState = (): boolean =>
    tools.catalog.snapshot.memo('state tools', () =>
      tools.catalog.snapshot.entries.some(({ facts }) => facts.state !== undefined),
    )
  const reliable = reliability(options, {
    context,
    stateRule,
    usesState,
    needs,
    scoped: () => authorization.declared,
    lists: [
      { ...listed(listTools, 'tools', 'name'), scopes: name => tools.catalog.get(name)?.facts.scopes },
      { ...listed(listPrompts, 'prompts', 'name'), scopes: name => prompts.catalog.get(name)?.scopes },
      { ...listed(listResources, 'resources', 'uri'), scopes: uri => resources.scopes(uri) },
      {
        ...listed(listResourceTemplates, 'resourceTemplates', 'uriTemplate'),
        scopes: address => resources.templates.get(address)?.scopes,
      },
    ],
    clock,
    trace,
    seal,
    askMs: replay.expiresMs,
    tools: () => tools.catalog,
    began: () => engine.replan(),
    engine: () => engine,
    offers: name => tools.catalog.get(name) !== undefined,
    detaches: exchange => tasks.detaches(exchange),
    undoEvents: place => events.undo(place),
    announcing: (name, payload, owner) => events.announcing(name, payload, owner),
  })
  const tools = toolsServer<Context>({
    expected: offers('tools') || facadeParts(options.facade).size > 0,
    paging,
    clock,
    context,
    admit: rates.call,
    failed: (tool, error, caller, correlationId) =>
      trace('tool-failed', { tool, error, ...(correlationId && { correlationId }) }, caller),
    more: reliable.toolExtras,
    stream: reliable.streaming.stream,
    explain: reliable.problemMeta,
  })
  const tellWatched = (uri: string, watched: boolean): void => {
    for (const fn of engine.onWatch) fn(uri, watched)
  }
  const resources = resourcesServer<Context>({
    expected: offers('resources'),
    paging,
    cache,
    context,
    subscriptions: limits.subscriptions,
    lapsing: reliable.lapsing,
    watched: tellWatched,
  })
  const prompts = promptsServer<Context>({ expected: offers('prompts'), paging, context })
  const completion = completionServer<Context>({
    prompt: prompts.completers,
    template: resources.completers,
    offered: () => offers('completions') || prompts.completes() || resources.completes(),
    admit: rates.completion,
    context,
  })
  const subscriptions = subscriptionsServer({
    engine: () => engine,
    clock,
    limits,
    subscribers: resources.subscribers,
    watchable: (exchange, uri) => reliable.hears(exchange, uri, resources.scopes(uri)),
    hears: uri => {
      const scopes = resources.scopes(uri)
      return scopes && (asker => reliable.hears(asker, uri, scopes))
    },
    lapsing: reliable.lapsing.listens,
    watched: tellWatched,
    offered: {
      tools: () => tools.catalog.snapshot.entries.map(({ tool }) => tool),
      resources: () => resources.resources.snapshot.entries.map(({ resource }) => resource),
    },
  })
  const { shared } = reliable
  const tasks = tasksServer({ clock, seal, tools: tools.catalog, limits: placesOf(limits), ...shared })
  subscriptions.kind(tasks.listening)
  const recommendations = recommendationsServer(options.recommendations)
  const events = serverEvents({
    options: options.events,
    name: options.name,
    store: reliable.store,
    shared: shared !== undefined,
    sessions: options.sessions !== false,
    clock,
    trace,
    engine: () => engine,
    judge: reliable.judgeHearing,
    updated: subscriptions.updated,
    declare: (scopes, what) => authorization.declare(scopes, what),
  })
  subscriptions.kind(events.listening)
  const manifest = serverManifest(options, {
    engine: () => engine,
    sides: () => sides,
    tools,
    resources,
    subscriptions,
    rates,
    clock,
    cache,
    filtered: () => middleware.length > logging,
    recommendations: recommendations.listed,
    events,
  })
  tools.catalog.onChange(() => {
    engine.replan()
    subscriptions.changed('tools')
  })
  prompts.catalog.onChange(() => {
    engine.replan()
    subscriptions.changed('prompts')
  })
  resources.resources.onChange(() => subscriptions.changed('resources'))
  resources.templates.onChange(() => subscriptions.changed('resources'))
  const authorization = authorizationServer({
    needs,
    elsewhere: reliable.decides,
    began: () => engine.replan(),
  })
  const dialects = (): Side[] => {
    const parts = facadeParts(options.facade)
    const compile: FacadeOptions['compile'] = (name, facts) => tools.compile(name, facts, () => undefined)
    return [
      ...(options.profile === 'davioe' ? [davioeSide()] : []),
      ...(parts.size === 0
        ? []
        : [facadeSide({ parts, engine: () => engine, catalog: () => tools.catalog, compile, events: () => events.catalog })]),
    ]
  }
  const middleware: Layer[] = log.level === 'debug' ? [callLayer(log, clock)] : []
  const logging = middleware.length
  const sides: Side[] = [
    lifecycleServer({ instructions: options.instructions, cache, onExit }),
    tools.side,
    resources.side,
    prompts.side,
    completion,
    subscriptions.side,
    tasks.side,
    events.side,
    authorization.side,
    loggingServer(),
    progressReceiver(),
    cancellation(),
    rootsServer(),
    { layers: [unsealLayer(replay)], errors: elicitationErrors },
    ...dialects(),
    ...reliable.sides,
    rates.side,
    ...[recommendations.side, manifest?.side].filter(side => side !== undefined),
  ]
  const engine = new Engine({
    role: 'server',
    info: infoOf(options),
    spoken: new Spoken(options.revisions),
    limits,
    sides,
    middleware,
    clock,
    sessions: options.sessions ?? true,
    trace,
    sendCancel,
    asking: replayAsking(replay),
    askTimeoutMs: replay.expiresMs,
    explain: reliable.explain,
    explainTo: reliable.explainTo,
    ...(shared === undefined || options.sessions === false
      ? {}
      : { shared: { ...shared, sessions: () => shareSessions(engine, shared.store) } }),
  })
  offerLifecycle(options, events)
  const document = manifestDocument(options, engine)
  if (document !== undefined) showBeside(engine, { document })
  const live = serverLive({
    options: options.live,
    clock,
    trace,
    engine: () => engine,
    store: reliable.store,
    shared: shared !== undefined,
    askMs: replay.expiresMs,
    tool: (name, facts, handler) => server.tool(name, facts, handler),
    resource: (uri, facts, handler) => server.resource(uri, facts, handler),
    updated: subscriptions.updated,
    add: side => {
      sides.push(side)
      engine.replan()
    },
  })
  const { references } = reliable
  if (references !== undefined) showReferences(engine, resources, references)
  const listening = new Set<Listening>()
  const server: Server = {
    get door() {
      return live.door(engine)
    },
    engine,
    tool: (name, facts, handler) =>
      register(tools.catalog, name, facts, now => {
        authorization.declare(now.scopes ?? (now.scopesFor && []), 'a tool')
        reliable.declare(name, now)
        reliable.state.declare(now.state)
        const entry = tools.compile(name, now, handler as ToolHandler<Context>)
        if ((now.description ?? '').trim() === '') log.warn('tool-undescribed', { tool: name, fix: describe })
        return entry
      }),
    resource: (address, facts, handler) =>
      addResource(resources, address, facts, handler as ResourceHandler<Context>, authorization.declare),
    prompt: <F extends PromptFacts<Context>>(name: string, facts: F, handler: PromptHandler<Context>) =>
      register(prompts.catalog, name, facts, now => {
        authorization.declare(now.scopes, 'a prompt')
        return prompts.compile(name, now, handler)
      }),
    resourceUpdated: subscriptions.updated,
    event: events.add,
    featureSet: live.featureSet,
    importer: (given, handler) => {
      const { store, runners } = reliable
      const { facts, handler: run } = importerOf({ store, runners, clock, owner: Context.owner }, given, handler)
      return server.tool(importerName, facts, run)
    },
    transactions: reliable.transactions,
    confirmations: reliable.confirmations,
    audit: reliable.audit,
    permissions: reliable.permissions,
    budgets: reliable.budgets,
    states: reliable.state.states,
    use: layer => {
      middleware.push(middlewareLayer(layer, context))
      engine.replan()
      return server
    },
    stdio: async () => {
      await Promise.all([live.loading(), reliable.ready()])
      return serveStdio(engine)
    },
    listen: async where => {
      await Promise.all([live.loading(), reliable.ready()])
      const opened = await serveHttp(engine, where)
      listening.add(opened)
      references?.listens(opened.url)
      return opened
    },
    fetch: live.gated(fetchFace(engine, {})),
    fetchWith: where => live.gated(fetchFace(engine, where)),
    close: async () => {
      await live.close()
      events.close()
      subscriptions.close()
      tasks.close()
      await Promise.all([engine.close(), ...[...listening].map(each => each.close())])
      await reliable.close()
    },
    [Symbol.asyncDispose]: () => server.close(),
  }
  return server
}

function addResource<F extends ResourceFacts<Context>>(
  { resources, templates, compileResource, compileTemplate }: ResourcesServer<Context>,
  address: string,
  facts: F,
  handler: ResourceHandler<Context>,
  declare: AuthorizationServer['declare'],
): Registration<F> {
  const declared = (now: F): F => {
    declare(now.scopes, 'a resource')
    return now
  }
  if (isTemplate(address)) return register(templates, address, facts, now => compileTemplate(address, declared(now), handler))
  return register(resources, address, facts, now => compileResource(address, declared(now), handler))
}

function listed({ name: method }: Method, member: string, named: string) {
  return { method, member, named }
}

/** Those who have no address read them like resources; what reads them stands before the handler. */
function showReferences(
  engine: Engine,
  { templates, compileTemplate }: ResourcesServer<Context>,
  { downloads }: ServerReferences,
): void {
  showBeside(engine, { downloads })
  const facts = { name: 'references', title: 'Data references', description: 'Contents that tools have given by reference' }
  templates.add(compileTemplate('ref:{id}', facts, () => undefined))
}

/** Loaded with the first session. */
async function shareSessions(engine: Engine, shared: () => Promise<Store>): Promise<Shared> {
  const [{ sharedSessions }, store] = await Promise.all([import('../engine/shared-sessions.ts'), shared()])
  const { clock, limits, memories } = engine
  return sharedSessions({ engine, store, clock, idleMs: limits.sessionIdleMs, memories })
}

function placesOf({ runningTasks, runningTasksPerCaller }: Limits): RunningLimitOptions {
  return { runningTasks, runningTasksPerCaller }
}

/** Whoever leaves a process without having asked for its shutdown leaves it with an error, as language servers have it. */
function onExit(clean: boolean, carrier: Carrier): void {
  if (!clean && carrier === 'stdio') process.exitCode = 1
}
