// Renders the sample documents and checks every page in headless Chromium.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [loopx, tools] = process.argv.slice(2);
const require = createRequire(join(tools, 'package.json'));
const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'loopx-page-'));
const faults = [];
let checks = 0;

function check(holds, what) {
  checks += 1;
  if (!holds) faults.push(what);
}

function call(command, request) {
  const args = ['periodic-report', command, '--request-json', '-', '--format', 'json'];
  return JSON.parse(execFileSync(loopx, args, { input: JSON.stringify(request), encoding: 'utf8', maxBuffer: 1 << 26 }));
}

/** Builds and renders one sample; returns the file of its page. */
function render(name, sample) {
  const { projections, ...parts } = sample;
  parts.sources = projections.map((one) => call('build-source', { project_progress: one }).source_result);
  const { document } = call('build-document', parts);
  return save(name, call('render', { renderer_id: 'html_artifact_v0', document }).artifact);
}

function save(name, artifact) {
  const file = join(folder, `${name}.html`);
  writeFileSync(file, artifact.content);
  return { name, file, digest: artifact.companion_markdown_digest };
}

function emptyPage() {
  const project = mkdtempSync(join(folder, 'empty-'));
  execFileSync('git', ['init', '-q', project]);
  execFileSync(loopx, ['periodic-report', 'generate', '--timezone', 'UTC', '--window', 'last-week', '--out', 'report'], { cwd: project });
  const bundle = JSON.parse(readFileSync(join(project, 'report/bundle.json'), 'utf8'));
  return save('empty', bundle.artifacts.find((one) => one.renderer_kind === 'html'));
}

async function open(browser, page, options) {
  const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
  const tab = await context.newPage();
  const requests = [];
  tab.on('request', (request) => requests.push(request.url()));
  const errors = [];
  tab.on('pageerror', (error) => errors.push(String(error)));
  tab.on('console', (line) => line.type() === 'error' && errors.push(line.text()));
  await tab.goto(`file://${page.file}`);
  return { context, tab, requests, errors };
}

async function accessibility(browser, page, width, colorScheme) {
  const where = `${page.name} ${width}px ${colorScheme}`;
  const { context, tab, requests, errors } = await open(browser, page, { viewport: { width, height: 800 }, colorScheme });
  check(requests.length === 1, `${where}: ${requests.length} requests`);
  await tab.evaluate(() => document.querySelectorAll('details').forEach((one) => { one.open = true; }));
  await tab.evaluate(axe);
  const result = await tab.evaluate(() => globalThis.axe.run(document, {
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
    rules: { 'color-contrast-enhanced': { enabled: true } },
  }));
  for (const found of result.violations) {
    faults.push(`${where}: ${found.id} at ${found.nodes.slice(0, 3).map((node) => node.target.join(' ')).join(', ')}`);
  }
  checks += 1;
  const [scroll, client] = await tab.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  check(scroll <= client, `${where}: scrolls sideways (${scroll} > ${client})`);
  check(errors.length === 0, `${where}: ${errors.join('; ')}`);
  await context.close();
}

/** What a reader can do: first screen, search, section links, copying, printing. */
async function behaviour(browser, page) {
  const { context, tab } = await open(browser, page, { viewport: { width: 1280, height: 800 }, colorScheme: 'dark' });
  const end = await tab.evaluate(() => document.querySelector('.brief')?.getBoundingClientRect().bottom ?? 0);
  check(end < 800 || page.name === 'hostile', `${page.name}: the four answers end at ${end} px`);
  const text = await tab.evaluate(() => document.querySelector('[data-report-markdown]').textContent);
  const digest = `sha256:${createHash('sha256').update(text).digest('hex')}`;
  check(digest === page.digest, `${page.name}: the plain text has another digest`);
  const items = await tab.locator('.items > li').count();
  await tab.locator('[data-report-search]').fill('zzz-no-such-word');
  check((await tab.locator('.items > li:visible').count()) === 0, `${page.name}: the filter hides nothing`);
  await tab.locator('[data-report-search]').fill('');
  check((await tab.locator('.items > li:visible').count()) === items, `${page.name}: the filter keeps things hidden`);
  const links = tab.locator('[data-section-filter]:not([data-section-filter=all])');
  if ((await links.count()) > 1) {
    await links.nth(1).click();
    check((await tab.locator('.sec:visible').count()) === 1, `${page.name}: a section link shows other sections`);
    check((await links.nth(1).getAttribute('aria-current')) === 'true', `${page.name}: the active link is not marked`);
  }
  await tab.evaluate(() => { location.hash = '#nowhere'; });
  check((await tab.locator('.sec:visible').count()) === (await tab.locator('.sec').count()), `${page.name}: an unknown hash hides sections`);
  await tab.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));
  await tab.evaluate(() => { document.execCommand = () => false; });
  await tab.locator('[data-copy-markdown]').click();
  check(await tab.evaluate(() => document.querySelector('.plain').open && getSelection().toString().length > 0), `${page.name}: no text selected when copying is not allowed`);
  check((await tab.locator('[role=status]').textContent()).length > 0, `${page.name}: copying says nothing`);
  const injected = await tab.evaluate(async () => {
    const script = document.createElement('script');
    script.textContent = 'globalThis.injected = true';
    document.body.append(script);
    return globalThis.injected === true;
  });
  check(!injected, `${page.name}: the policy lets a foreign script run`);
  await tab.emulateMedia({ media: 'print', colorScheme: 'dark' });
  const paper = await tab.evaluate(() => [getComputedStyle(document.documentElement).backgroundColor, getComputedStyle(document.querySelector('h1')).color]);
  check(paper.join() === 'rgb(255, 255, 255),rgb(21, 25, 28)', `${page.name}: prints ${paper.join(' ')}`);
  check((await tab.locator('.rail:visible').count()) === 0, `${page.name}: prints the rail`);
  await context.close();
}

async function withoutScript(browser, page) {
  const { context, tab } = await open(browser, page, { javaScriptEnabled: false, viewport: { width: 1280, height: 800 } });
  check((await tab.locator('[data-needs-script]:visible').count()) === 0, `${page.name}: tools show without script`);
  check((await tab.locator('.items > li:visible').count()) === (await tab.locator('.items > li').count()), `${page.name}: items are hidden without script`);
  await context.close();
}

const pages = readdirSync('fixtures/page')
  .filter((name) => name.endsWith('.json'))
  .map((name) => render(name.replace('.json', ''), JSON.parse(readFileSync(join('fixtures/page', name), 'utf8'))));
pages.push(emptyPage());

const flags = ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'];
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: flags });
for (const page of pages) {
  for (const width of [1280, 320]) {
    for (const scheme of ['light', 'dark']) await accessibility(browser, page, width, scheme);
  }
  await behaviour(browser, page);
  await withoutScript(browser, page);
}
await browser.close();
rmSync(folder, { recursive: true });
for (const fault of faults) console.log(`FAIL ${fault}`);
console.log(`${checks - faults.length} passed, ${faults.length} failed`);
process.exit(faults.length === 0 ? 0 : 1);
