(()=>{const doc=document,one=s=>doc.querySelector(s),many=s=>[...doc.querySelectorAll(s)];
const links=many('[data-section-filter]'),field=one('[data-report-search]'),line=one('[data-report-status]'),plain=one('[data-report-markdown]');
for(const el of many('[data-needs-script]'))el.hidden=false;
const current=()=>{const hit=links.find(a=>a.dataset.sectionFilter!=='all'&&a.hash===location.hash)||links[0];
for(const a of links)a.setAttribute('aria-current',a===hit?'true':'false')};
addEventListener('hashchange',current);current();
const fold=s=>s.normalize('NFKC').toLowerCase();let rows;
field.addEventListener('input',()=>{rows=rows||many('[data-section]').map(s=>({s,list:[...s.querySelectorAll('.items>li')].map(li=>({li,text:fold(li.textContent)}))}));
const words=fold(field.value).split(/\s+/).filter(Boolean);let seen=0,all=0;
for(const {s,list} of rows){let left=0;for(const {li,text} of list){const keep=words.every(w=>text.includes(w));li.classList.toggle('off',!keep);if(keep)left++}
s.classList.toggle('off',words.length>0&&left===0);seen+=left;all+=list.length}
line.textContent=words.length?`${seen} / ${all}`:''});
one('[data-copy-markdown]').addEventListener('click',async()=>{let done=false;
try{await navigator.clipboard.writeText(plain.textContent);done=true}catch{plain.closest('details').open=true;getSelection().selectAllChildren(plain);
try{done=doc.execCommand('copy')}catch{}}
line.textContent=done?line.dataset.copySuccess:line.dataset.copyFailed});
one('[data-print-report]').addEventListener('click',()=>print())})();
