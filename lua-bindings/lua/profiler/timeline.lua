-- profiler/timeline.lua: p:timeline{...}: what a terminal shows of it is text; a notebook gets a page that can be zoomed, with
-- all that it needs in it. Returns the class and what makes one.
local tide = ...
local Timeline = { __name = "Timeline" }
Timeline.__index = Timeline
tide._class("Timeline", Timeline)

-- w and s zoom, a and d move, as in chrome://tracing; / searches. Colours of slices go by name, but for loading; those of the
-- page are the front end's, light or dark, and those of the system where there is none.
local page = [==[
<div class="tide-timeline" tabindex="0" style="font:12px sans-serif;outline:none;border:1px solid #8888;color-scheme:light dark;
 background:var(--jp-layout-color0,var(--vscode-editor-background,Canvas));color:var(--jp-ui-font-color1,var(--vscode-editor-foreground,CanvasText))">
<div style="padding:4px;display:flex;flex-wrap:wrap;gap:2px 8px;align-items:center"><input type="search" placeholder="search ( / )"
 style="width:14em;background:transparent;color:inherit;border:1px solid #8888"><span class="found"></span><span style="flex:1"></span><span
 class="loading" style="display:none"><span style="display:inline-block;width:.8em;height:.8em;background:LOADING"></span> loading, once in a process</span><span
 class="hint" style="opacity:.7">w s zoom, a d move, wheel, drag, double click: all</span></div>
<canvas style="width:100%;display:block;cursor:crosshair"></canvas><div class="note" style="padding:4px;min-height:2.6em;white-space:pre-wrap">Its script did not run: run the cell, or trust the notebook.</div>
</div>
<script>(function(){
var D=DATA_OF_THE_PROFILE,here=document.currentScript,box=here.previousElementSibling;
while(box&&!(box.classList&&box.classList.contains("tide-timeline")))box=box.previousElementSibling;
var canvas=box.querySelector("canvas"),g=canvas.getContext("2d"),note=box.querySelector(".note"),
 input=box.querySelector("input"),found=box.querySelector(".found");
var S=D.slices,N=S.length/8,span=D.to-D.from,a=0,b=span,H=16,TOP=18,word="",hover=-1,tops=[],y=TOP;
D.rows.forEach(function(r){tops.push(y);y+=16+r.depth*H+6;});
var height=y,dpr=window.devicePixelRatio||1;
function time(ns){var x=Math.abs(ns);return x>=1e9?(ns/1e9).toPrecision(4)+" s":x>=1e6?(ns/1e6).toPrecision(4)+" ms":
 x>=1e3?(ns/1e3).toPrecision(4)+" µs":Math.round(ns)+" ns";}
function hue(s){var h=0;for(var i=0;i<s.length;i++)h=(h*31+s.charCodeAt(i))%360;return h;}
var colors=D.names.map(function(s){return"hsl("+hue(s)+",60%,"+(66+hue(s)%3*6)+"%)";}),loading=D.kinds.indexOf("loading"),hits=D.names.map(function(){return true;});
function width(){return canvas.clientWidth||800;}
function px(t){return(t-a)/(b-a)*width();}
function fit(s,w){if(g.measureText(s).width<=w)return s;while(s&&g.measureText(s+"…").width>w)s=s.slice(0,-1);return s?s+"…":"";}
function round(room){var step=Math.pow(10,Math.floor(Math.log10(room)));return[1,2,5,10].map(function(m){return m*step;}).filter(function(s){
 return s>=room*.999;})[0];}
function mark(t,step){var u=step>=1e9?[1e9," s"]:step>=1e6?[1e6," ms"]:step>=1e3?[1e3," µs"]:[1," ns"];
 return Math.round(t/u[0])+u[1];}
function draw(){var w=width(),ink=getComputedStyle(box).color;canvas.width=w*dpr;canvas.height=height*dpr;canvas.style.height=height+"px";
 g.setTransform(dpr,0,0,dpr,0,0);g.clearRect(0,0,w,height);g.font="11px sans-serif";g.textBaseline="middle";
 var step=Math.max(round((b-a)/w*80),1);g.strokeStyle=g.fillStyle=ink;
 for(var t=Math.ceil((D.from+a)/step)*step-D.from;t<=b;t+=step){var x=px(t),label=mark(D.from+t,step);g.globalAlpha=.15;g.beginPath();
  g.moveTo(x,0);g.lineTo(x,height);g.stroke();g.globalAlpha=.75;if(x+3+g.measureText(label).width<=w)g.fillText(label,x+3,9);}
 g.globalAlpha=1;
 D.rows.forEach(function(r,k){g.fillStyle=ink;g.fillText(r.name,4,tops[k]+8);});
 var edge={};
 for(var i=0;i<N;i++){var o=i*8,s=S[o+2],l=S[o+3];if(s>b||s+l<a)continue;
  var x0=Math.max(px(s),0),x1=Math.min(px(s+l),w),row=S[o],yy=tops[row]+16+S[o+1]*H,key=row*4096+S[o+1],hit=hits[S[o+4]];
  if(x1-x0<.7){if(edge[key]>x0&&(hit||!word))continue;x1=x0+.7;}edge[key]=x1;
  g.globalAlpha=word&&!hit?.25:1;g.fillStyle=i===hover?ink:word&&hit?"#e45756":S[o+7]===loading?"LOADING":colors[S[o+4]];
  g.fillRect(x0,yy,x1-x0,H-1);
  if(x1-x0>24){g.fillStyle=i===hover?getComputedStyle(box).backgroundColor:"#111";
   g.fillText(fit(D.names[S[o+4]],x1-x0-5),x0+3,yy+H/2);}}g.globalAlpha=1;}
function at(e){var r=canvas.getBoundingClientRect(),x=e.clientX-r.left,yy=e.clientY-r.top,t=a+x/width()*(b-a),slack=(b-a)/width()*2,best=-1;
 for(var i=0;i<N;i++){var o=i*8,top=tops[S[o]]+16+S[o+1]*H;if(yy>=top&&yy<top+H&&t>=S[o+2]-slack&&t<=S[o+2]+S[o+3]+slack){
  if(best<0||S[o+3]<S[best*8+3])best=i;}}return best;}
function tell(i){if(i<0){note.textContent=D.left_out?D.left_out+" shorter slices are left out":"";return;}
 var o=i*8,text=D.names[S[o+4]]+"  "+time(S[o+3])+"  "+D.kinds[S[o+7]]+", from "+time(D.from+S[o+2]);
 if(S[o+5]>=0)text+="  "+D.lines[S[o+5]];if(S[o+6]>=0)text+="\n"+D.shapes[S[o+6]];note.textContent=text;}
function zoom(f,t){var n=Math.min(Math.max((b-a)*f,10),span),k=(t-a)/(b-a);a=Math.max(0,Math.min(t-n*k,span-n));b=a+n;draw();}
function move(d){var n=b-a;a=Math.max(0,Math.min(a+d*n,span-n));b=a+n;draw();}
box.addEventListener("keydown",function(e){if(e.target===input){if(e.key==="Escape")box.focus();e.stopPropagation();return;}
 var keys={w:function(){zoom(.7,(a+b)/2);},s:function(){zoom(1/.7,(a+b)/2);},a:function(){move(-.2);},d:function(){move(.2);},
  "/":function(){input.focus();}};
 if(keys[e.key]&&!e.ctrlKey&&!e.metaKey&&!e.altKey){keys[e.key]();e.preventDefault();e.stopPropagation();}});
canvas.addEventListener("wheel",function(e){var r=canvas.getBoundingClientRect();zoom(e.deltaY<0?.8:1.25,a+(e.clientX-r.left)/width()*(b-a));
 e.preventDefault();},{passive:false});
var from=null;
canvas.addEventListener("mousedown",function(e){from=e.clientX;box.focus();});
window.addEventListener("mouseup",function(){from=null;});
canvas.addEventListener("mousemove",function(e){if(from!==null){move((from-e.clientX)/width());from=e.clientX;return;}
 var i=at(e);if(i!==hover){hover=i;tell(i);draw();}});
canvas.addEventListener("dblclick",function(){a=0;b=span;draw();});
input.addEventListener("input",function(){word=input.value.toLowerCase();var n=0,sum=0;
 hits=D.names.map(function(s){return s.toLowerCase().indexOf(word)>=0;});
 for(var i=0;i<N;i++)if(hits[S[i*8+4]]){n++;sum+=S[i*8+3];}found.textContent=word?n+" slices, "+time(sum):"";draw();});
window.addEventListener("resize",draw);for(var k=0;k<N;k++)if(S[k*8+7]===loading)box.querySelector(".loading").style.display="";tell(-1);draw();
new MutationObserver(draw).observe(document.body,{attributes:true});if(window.ResizeObserver)new ResizeObserver(draw).observe(box);
})();</script>]==]

function Timeline:__tostring()
    return self.profile:_timeline_text(self.from, self.to, { width = self.width, color = self.color })
end

local LOADING = "#9a9590" -- the colour of what is loaded once in a process

-- A page by itself, for a file or a cell.
Timeline.html = tide._function("html(Timeline self) -> str", "A page with the timeline, which needs nothing else.", function(self)
    local data = self.profile:_timeline_data(self.from, self.to)
    local before, after = string.match(string.gsub(page, "LOADING", LOADING), "^(.-)DATA_OF_THE_PROFILE(.*)$")
    return before .. data .. after
end)

function Timeline:__display()
    return { ["text/html"] = self:html() }
end

return function(profile, from, to, width)
    local frontend = tide._frontend and tide._frontend() or {}
    local columns = frontend.width and frontend.width > 0 and frontend.width or 100
    local self = setmetatable({ profile = profile, from = from, to = to, width = width or math.max(20, math.min(columns - 34, 200)),
        color = frontend.color and frontend.interactive and not frontend.notebook or false }, Timeline)
    tostring(self) -- a window that is none is refused here
    return self
end
